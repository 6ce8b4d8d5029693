/** An edit as lines of a real shell; undefined where its names are no text that a command line can hold. */
import { ancestors } from "./nodes.js";
import type { Edit } from "./nodes.js";

export function shellScript(edit: Edit): readonly string[] | undefined {
  const texts = [edit.path, edit.kind === "rename" ? edit.to : "", edit.kind === "put" ? bytesIn(edit) : ""];
  if (texts.some((text) => /[^\x20-\x7e\n]/.test(text))) return undefined;
  const path = quoted(edit.path);
  switch (edit.kind) {
    case "delete":
      return [`rm -rf ${path}`];
    case "chmod":
      return [`chmod ${edit.mode.toString(8)} ${path}`];
    case "rename":
      return [`mv -T ${path} ${quoted(edit.to)}`];
    case "put":
      return [...[...ancestors(edit.path)].reverse().map(quoted).map(directory), ...put(path, edit)];
  }
}

const bytesIn = ({ node }: Extract<Edit, { kind: "put" }>): string => (node.kind === "file" ? node.bytes : "");

const directory = (path: string): string =>
  `if [ -L ${path} ] || [ ! -d ${path} ]; then rm -f ${path}; mkdir ${path}; chmod 755 ${path}; fi`;

function put(path: string, { node }: Extract<Edit, { kind: "put" }>): readonly string[] {
  switch (node.kind) {
    case "link":
      return [`rm -rf ${path}`, `ln -s ${quoted(node.target)} ${path}`];
    case "directory":
      return [`if [ -L ${path} ] || [ ! -d ${path} ]; then rm -f ${path}; fi`, `mkdir -p ${path}`, mode(path, node)];
    case "file":
      return [
        `if [ -L ${path} ] || [ ! -f ${path} ]; then rm -rf ${path}; fi`,
        `printf %s ${quoted(node.bytes)} > ${path}`,
        mode(path, node),
      ];
  }
}

const mode = (path: string, node: { readonly mode: number }): string => `chmod ${node.mode.toString(8)} ${path}`;
const quoted = (text: string): string => `'${text}'`;

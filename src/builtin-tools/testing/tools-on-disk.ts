/** The tools of one or more loops over a real directory, called as a loop calls them. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { isLooprigError, mintCallId, mintLoopId, mintSessionId } from "../../core/index.js";
import type { FileSystem } from "../../core/index.js";
import { bindTools, defineTools } from "../../tool/index.js";
import type { BoundTool, ToolResult } from "../../tool/index.js";
import { canonicalPath, createCoordinator, createObservations } from "../../workspace/index.js";
import type { OwnedCoordinator } from "../../workspace/index.js";
import { bash } from "../bash.js";
import { edit } from "../edit.js";
import { fileTools } from "../file-tools.js";
import { LoopFiles } from "../loop-files.js";
import { read } from "../read.js";
import { write } from "../write.js";

export class ToolsOnDisk implements Disposable {
  readonly dir = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "looprig-"));
  readonly root = canonicalPath(path.join(this.dir, "root"));
  readonly coordinator: OwnedCoordinator;

  constructor() {
    fs.mkdirSync(this.root);
    this.coordinator = createCoordinator({ root: this.root });
  }

  /** Another loop; with a coordinator of its own it is of another session. */
  async loop(coordinator: OwnedCoordinator = this.coordinator): Promise<LoopTools> {
    const { root } = this;
    const available = {
      ...{ sessionId: mintSessionId(), loopId: mintLoopId() },
      workspace: { root, coordinator, observations: createObservations({ root }) },
    };
    const tools = new Map<string, BoundTool>();
    for (const definition of [fileTools(), bash({ needsApproval: false })]) {
      for (const [name, tool] of await bindTools(definition, available)) tools.set(name, tool);
    }
    return new LoopTools(tools);
  }

  /** A loop whose reading and writing tools see the root as on a volume that folds names: one name for all that `fold` makes equal. */
  async foldingLoop(fileSystem: FileSystem, fold: (name: string) => string): Promise<LoopTools> {
    const { root } = this;
    const files = defineTools({
      name: "files",
      produces: ["Read", "Write", "Edit"],
      requires: ["workspace"],
      build: ({ workspace }) => {
        const shared = new LoopFiles(workspace, fileSystem);
        return { Read: read(shared), Write: write(shared), Edit: edit(shared) };
      },
    });
    return new LoopTools(
      await bindTools(files, {
        ...{ sessionId: mintSessionId(), loopId: mintLoopId() },
        workspace: {
          root,
          coordinator: createCoordinator({ root, fold }),
          observations: createObservations({ root, fold }),
        },
      }),
    );
  }

  at(name: string): string {
    return path.join(this.root, name);
  }

  write(name: string, content: string | Uint8Array): void {
    fs.mkdirSync(path.dirname(this.at(name)), { recursive: true });
    fs.writeFileSync(this.at(name), content);
  }

  read(name: string): string {
    return fs.readFileSync(this.at(name), "utf8");
  }

  [Symbol.dispose](): void {
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

export class LoopTools {
  constructor(readonly tools: ReadonlyMap<string, BoundTool>) {}

  /** The answer, or what it rejects with; input that the schema refuses rejects. */
  async call(name: string, input: unknown, signal = new AbortController().signal): Promise<ToolResult> {
    const tool = this.tools.get(name);
    if (tool === undefined) throw new Error(`There is no tool ${name}`);
    const { value, issues } = await tool.validate(input);
    if (issues !== undefined) throw new Error(issues.join("\n"));
    return tool.execute(value, { signal, callId: mintCallId() });
  }

  /** The text of an answer that is no error. */
  async ok(name: string, input: unknown): Promise<string> {
    const { text, isError } = await this.call(name, input);
    if (isError) throw new Error(`${name} answered with an error: ${text}`);
    return text;
  }

  /** The code that a call is refused with, thrown or answered. */
  async refusal(name: string, input: unknown): Promise<{ readonly code: string; readonly text: string }> {
    try {
      const { text, data, isError } = await this.call(name, input);
      if (!isError) throw new Error(`${name} was not refused: ${text}`);
      return { code: (data as { readonly code?: string } | undefined)?.code ?? "", text };
    } catch (error) {
      if (!isLooprigError(error)) throw error;
      return { code: error.code, text: error.message };
    }
  }
}

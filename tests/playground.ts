/**
 * A place to try the workspace in: a temporary directory with a root and a state directory beside it, and ways to look at a
 * tree that share nothing with the code under test.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { openLocalStorage } from "../src/storage-local/index.js";
import type { Storage } from "../src/storage/index.js";
import { openWorkspace, readWorkspace } from "../src/workspace/index.js";
import type { OpenWorkspaceOptions, Workspace, WorkspaceView, WorkspaceWorld } from "../src/workspace/index.js";

const memory = "/dev/shm";

function hasRoom(directory: string): boolean {
  if (!fs.existsSync(directory)) return false;
  const { bavail, bsize } = fs.statfsSync(directory);
  return bavail * bsize > 1024 ** 3;
}

type Content = string | Uint8Array;

export class Playground implements AsyncDisposable {
  readonly dir: string;
  readonly root: string;
  readonly stateDir: string;
  #storage: Storage | undefined;

  /** `quick`: in memory where the machine has such a place, for tests that would only wait for the disk. */
  constructor(name = "root", { quick = false }: { readonly quick?: boolean } = {}) {
    const base = quick && hasRoom(memory) ? memory : os.tmpdir();
    this.dir = fs.mkdtempSync(path.join(fs.realpathSync(base), "looprig-"));
    this.root = path.join(this.dir, name);
    this.stateDir = path.join(this.dir, "state");
    fs.mkdirSync(this.root);
  }

  async storage(): Promise<Storage> {
    this.#storage ??= await openLocalStorage({ dir: this.stateDir });
    return this.#storage;
  }

  /** Opens the root without a baseline, as the command line does, unless told otherwise. */
  async open(options: Partial<OpenWorkspaceOptions> = {}, world: WorkspaceWorld = {}): Promise<Workspace> {
    return openWorkspace(
      { root: this.root, storage: await this.storage(), baseline: false, command: "test", ...options },
      world,
    );
  }

  async view(root = this.root): Promise<WorkspaceView> {
    return readWorkspace({ root, storage: await this.storage() });
  }

  at(name: string): string {
    return path.join(this.root, name);
  }

  /** Writes files, making their directories. */
  write(files: Readonly<Record<string, Content>>, base = this.root): void {
    for (const [name, content] of Object.entries(files)) {
      const file = path.join(base, name);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, content);
    }
  }

  read(name: string): string {
    return fs.readFileSync(this.at(name), "utf8");
  }

  /** A shell command of a careless agent, as `exec` is given it. */
  sh(script: string): readonly [string, ...string[]] {
    return ["sh", "-c", script];
  }

  tree(root = this.root): Readonly<Record<string, string>> {
    return listTree(root);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#storage?.close();
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

/** Every entry below `root` as `path → kind, mode, bytes`: what "equal" means, by means of plain `fs`. Names are bytes in hex where not UTF-8. */
export function listTree(root: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  const visit = (dir: Buffer, shown: string): void => {
    for (const name of fs.readdirSync(dir, { encoding: "buffer" })) {
      const file = Buffer.concat([dir, Buffer.from("/"), name]);
      const spelled = Buffer.from(name.toString("utf8")).equals(name)
        ? name.toString("utf8")
        : `hex:${name.toString("hex")}`;
      const at = shown === "" ? spelled : `${shown}/${spelled}`;
      const stat = fs.lstatSync(file);
      const mode = (stat.mode & 0o7777).toString(8);
      if (stat.isDirectory()) {
        found[at] = `directory ${mode}`;
        visit(file, at);
      } else if (stat.isSymbolicLink())
        found[at] = `link ${fs.readlinkSync(file, { encoding: "buffer" }).toString("latin1")}`;
      else if (stat.isFile()) found[at] = `file ${mode} ${fs.readFileSync(file).toString("latin1")}`;
      else found[at] = "special";
    }
  };
  visit(Buffer.from(root), "");
  return found;
}

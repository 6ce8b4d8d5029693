/** What a running command has at hand: its world, the options all commands share, and its two voices. */
import type { Environment } from "./environment.js";
import type { GlobalValues } from "./global-options.js";
import type { Interrupts } from "./interrupt.js";
import { displayRoot } from "./spelling.js";
import { styleFor } from "./style.js";
import type { Style } from "./style.js";

export class Context {
  readonly environment: Environment;
  readonly globals: GlobalValues;
  readonly interrupts: Interrupts;
  /** Of stdout and of stderr. */
  readonly style: Style;
  readonly talkStyle: Style;
  readonly now: Date;

  constructor(environment: Environment, globals: GlobalValues, interrupts: Interrupts) {
    this.environment = environment;
    this.globals = globals;
    this.interrupts = interrupts;
    const { env, stdout, stderr } = environment;
    this.style = styleFor({ terminal: stdout.terminal, noColor: globals.noColor, env });
    this.talkStyle = styleFor({ terminal: stderr.terminal, noColor: globals.noColor, env });
    this.now = environment.now();
  }

  get signal(): AbortSignal {
    return this.interrupts.signal;
  }

  /** A question can be asked: somebody reads stderr and types on stdin. */
  get canAsk(): boolean {
    return this.environment.stdin.terminal && this.environment.stderr.terminal;
  }

  /** Data, on stdout. */
  async print(text: string | Uint8Array): Promise<void> {
    await this.environment.stdout.write(text);
  }

  /** What a command reports of its deed, on stdout: data to a script, so silent where the document says it or --quiet was given. */
  async report(text: string): Promise<void> {
    if (!this.globals.json && !this.globals.quiet) await this.print(text);
  }

  /** Talk, on stderr. */
  async say(text: string): Promise<void> {
    if (!this.globals.quiet) await this.environment.stderr.write(text);
  }

  /** The one document of `--json`. */
  async document(command: string, root: string | null, fields: object): Promise<void> {
    await this.print(`${JSON.stringify({ schema: `looprig.${command}/1`, root, ...fields })}\n`);
  }

  displayRoot(root: string): string {
    return displayRoot(root, this.environment.home);
  }
}

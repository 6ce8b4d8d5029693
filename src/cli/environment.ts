/** The world a command runs in, as one value. Only `main.ts` makes one from the real process. */
import type { FileSystem } from "../core/index.js";
import type { SignalSource } from "./interrupt.js";
import type { Output } from "./output.js";

/** Standard input: answers, or a text. Nothing is read, and the stream is not even touched, until a question is asked. */
export interface AnswerSource {
  readonly terminal: boolean;
  /** One line without its end; undefined when the input has ended. Rejects with the signal's reason on abort. */
  readLine(signal: AbortSignal): Promise<string | undefined>;
  /** All of the input; undefined when it is longer than `bytesMax`. Rejects with the signal's reason on abort. */
  readAll(bytesMax: number, signal: AbortSignal): Promise<Buffer | undefined>;
}

export interface Environment {
  /** The words after the program's name, in the reversible spelling of core's names. */
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  /** Of the Node that runs us: `20.20.2`. */
  readonly nodeVersion: string;
  /** Whom new files belong to; undefined where there is no such thing. */
  readonly uid: number | undefined;
  readonly cwd: string;
  /** Where `~` is. */
  readonly home: string;
  /** Directories that are somebody's home, and so too broad to be roots. */
  readonly homes: readonly string[];
  readonly now: () => Date;
  readonly stdin: AnswerSource;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly fileSystem: FileSystem;
  readonly signals: SignalSource;
  /** Ends the process at once: the second Ctrl-C. */
  readonly stop: (exitCode: number) => void;
}

import { describe, expect, test } from "vitest";
import type { FileSystem } from "../core/index.js";
import { nodeFileSystem } from "../core/index.js";
import { rawWords } from "./raw-words.js";

/** A file system whose every file holds `bytes`. */
function holding(bytes: Buffer): FileSystem {
  let position = 0;
  return {
    ...nodeFileSystem,
    open: () => 99,
    close: () => undefined,
    read: (_fd, buffer) => {
      const length = bytes.copy(buffer, 0, position);
      position += length;
      return length;
    },
  };
}
const commandLine = (...words: (string | Buffer)[]): Buffer =>
  Buffer.concat(words.flatMap((word) => [Buffer.from(word), Buffer.of(0)]));

const broken = Buffer.from([0x63, 0xe9]);

describe("the words of a command line", () => {
  test("keep bytes that are not UTF-8", () => {
    const fileSystem = holding(commandLine("node", "main.js", "show", broken));
    expect(rawWords(["show", broken.toString("utf8")], fileSystem)).toEqual(["show", "c\udce9"]);
  });

  test("a U+FFFD that was typed stays one", () => {
    const fileSystem = holding(commandLine("node", "main.js", "\ufffd"));
    expect(rawWords(["\ufffd"], fileSystem)).toEqual(["\ufffd"]);
  });

  test("stay as they are where the kernel tells something else, or nothing", () => {
    const decoded = ["show", "c\ufffd"];
    expect(rawWords(decoded, holding(commandLine("renamed-process")))).toEqual(decoded);
    const without = {
      ...nodeFileSystem,
      open: () => {
        throw Object.assign(new Error("ENOENT"), { code: "ENOENT" });
      },
    };
    expect(rawWords(decoded, without)).toEqual(decoded);
  });
});

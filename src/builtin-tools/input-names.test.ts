import { expect, test } from "vitest";
import { mintLoopId, mintSessionId } from "../core/index.js";
import type { CanonicalRoot } from "../core/index.js";
import { bindTools } from "../tool/index.js";
import { createCoordinator } from "../workspace/index.js";
import { bash } from "./bash.js";
import { fileTools } from "./file-tools.js";

test("T6: the built-in tools take their input under the names that models know, and no other", async () => {
  const root = "/project" as CanonicalRoot;
  const available = {
    ...{ sessionId: mintSessionId(), loopId: mintLoopId() },
    workspace: { root, coordinator: createCoordinator({ root }) },
  };
  const tools = [...(await bindTools(fileTools(), available)), ...(await bindTools(bash(), available))];
  const spoken = tools.map(([name, { inputSchema }]) => {
    const {
      properties = {},
      required = [],
      additionalProperties,
    } = inputSchema as {
      readonly properties?: object;
      readonly required?: readonly string[];
      readonly additionalProperties?: boolean;
    };
    expect(additionalProperties).toBe(false);
    return `${name} ${Object.keys(properties)
      .map((member) => (required.includes(member) ? member : `${member}?`))
      .join(", ")}`;
  });
  expect(spoken.sort()).toEqual([
    "Bash command, timeout_ms?",
    "Edit file_path, old_string, new_string, replace_all?",
    "Glob pattern, path?",
    "Grep pattern, path?, glob?",
    "List path?",
    "Read file_path, offset?, limit?",
    "Write file_path, content",
  ]);
});

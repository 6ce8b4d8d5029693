import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { z } from "zod";
import { mintSessionId } from "../core/index.js";
import type { LoopId } from "../core/index.js";
import { bindTools } from "./bind.js";
import { defineTool } from "./definition.js";
import { jsonSchema } from "./json-schema.js";

const loaded = (): boolean =>
  Object.keys(createRequire(import.meta.url).cache).some((file) => file.includes("/node_modules/ajv/"));

test("T4 the compiler of JSON Schema is loaded by the first schema that needs it", async () => {
  const inputSchema = z.object({ path: z.string() });
  const definition = defineTool({ name: "Probe", description: "Probes", inputSchema, execute: () => "" });
  await bindTools(definition, { sessionId: mintSessionId(), loopId: "main" as LoopId });
  expect(loaded()).toBe(false);
  jsonSchema({ type: "object" });
  expect(loaded()).toBe(true);
});

import { expect, test } from "vitest";
import { mintCallId, mintEventId, mintPlanId, mintSessionId, mintTurnId, parseRef, parseSessionId } from "./ids.js";

test("minted ids are new each time, and session ids are what is parsed", () => {
  for (const mint of [mintSessionId, mintTurnId, mintEventId, mintCallId, mintPlanId]) {
    expect(new Set(Array.from({ length: 100 }, () => mint())).size).toBe(100);
  }
  const id = mintSessionId();
  expect(parseSessionId(id)).toBe(id);
  expect(mintPlanId()).toMatch(/^[0-9a-f]{12}$/);
});

test.each([
  "",
  "00000000-0000-0000-0000-000000000000",
  "3F9A0000-0000-4000-8000-000000000000",
  "3f9a0000-0000-4000-8000-00000000000",
  "3f9a0000-0000-4000-8000-000000000000\n",
  "../3f9a0000-0000-4000-8000-000000000",
  "3f9a000000004000800000000000000000",
])("%j is no session id", (text) => {
  expect(() => parseSessionId(text)).toThrow(
    expect.objectContaining({ code: "session_id.invalid", details: { given: text } }),
  );
});

const hex = "ab".repeat(32);
test("a ref is its full form and nothing else", () => {
  expect(parseRef(`v1:sha256:${hex}`)).toBe(`v1:sha256:${hex}`);
  for (const text of [
    hex,
    `sha256:${hex}`,
    `v1:sha256:${hex.toUpperCase()}`,
    `v1:sha256:${hex}0`,
    `v1:sha256:${hex}\n`,
    "c12",
  ]) {
    expect(() => parseRef(text)).toThrow(expect.objectContaining({ code: "ref.invalid" }));
  }
});

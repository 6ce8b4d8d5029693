import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mintEventId, mintSessionId } from "../core/index.js";
import type { NewEvent, SessionEvent } from "./events.js";
import { emptyFold, foldEvent } from "./fold.js";
import { sealEvent } from "./record.js";
import { arbitraryHistory } from "./testing/arbitrary-events.js";
import { checkpointed, closed, idle, started, tickingClock, turnDone, turnStarted } from "./testing/scenes.js";

const sessionId = mintSessionId();

function sealed(...history: readonly NewEvent[]): SessionEvent[] {
  const clock = tickingClock();
  return history.map((event, index) => sealEvent(event, { sessionId, seq: index + 1 }, mintEventId(), clock()));
}
const folded = (events: readonly SessionEvent[], from = emptyFold(sessionId)) => events.reduce(foldEvent, from);

describe("the fold of a session", () => {
  it("is the same at once and in parts", () => {
    fc.assert(
      fc.property(arbitraryHistory, fc.nat(20), (history, cut) => {
        const events = sealed(...history);
        expect(folded(events.slice(cut), folded(events.slice(0, cut)))).toEqual(folded(events));
      }),
    );
  });

  it("counts turns and checkpoints and keeps what the first event said", () => {
    const state = folded(sealed(started("/w"), turnStarted(1), checkpointed(1), turnDone(1), turnStarted(2)));
    expect(state).toMatchObject({ seq: 5, root: "/w", placement: "exclusive", command: "a test" });
    expect(state).toMatchObject({ turns: 2, checkpoints: 1, closed: false });
    expect(state.lastAt.getTime() - state.startedAt.getTime()).toBe(4_000);
  });

  it("U8: after checkpoints A and B and a restore of A it goes on from A, and still lists B as the newest", () => {
    const [a, b] = [`v1:sha256:${"a".repeat(64)}`, `v1:sha256:${"b".repeat(64)}`];
    const taken = (number: number, ref: string, trigger: string) =>
      ({ ...checkpointed(number), ref, number, trigger }) as NewEvent;
    const events = sealed(started("/w"), taken(1, a, "manual"), taken(2, b, "manual"), taken(3, a, "post-restore"));
    expect(folded(events)).toMatchObject({
      ...{ checkpoints: 3, lastCheckpoint: { number: 2, ref: b }, currentWorkspace: a },
    });
  });

  it("keeps the first root when a session starts a second time", () => {
    expect(folded(sealed(started("/w"), started("/elsewhere")))).toMatchObject({ root: "/w", seq: 2 });
  });

  it("is closed only while nothing follows the closing", () => {
    expect(folded(sealed(started(), closed)).closed).toBe(true);
    expect(folded(sealed(started(), closed, idle)).closed).toBe(false);
  });

  it("cuts a command that no catalog entry could hold", () => {
    const long = { ...started(), command: "x".repeat(2_000_000) } as NewEvent;
    expect(folded(sealed(long)).command).toHaveLength(1_000);
  });

  it("refuses events out of order", () => {
    const [first, second] = sealed(started(), idle) as [SessionEvent, SessionEvent];
    expect(() => folded([second])).toThrow(/BUG/);
    expect(() => folded([first, first])).toThrow(/BUG/);
  });
});

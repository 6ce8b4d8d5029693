import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CoordinatorState, placesConflict } from "./coordinator-state.js";
import type { PermitRequest, Place } from "./coordinator-state.js";

/** Few names and short paths, so that most requests meet. */
const place = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 0, maxLength: 3 });
const places = fc.oneof(
  { weight: 1, arbitrary: fc.constant<Place[]>([[]]) },
  { weight: 6, arbitrary: fc.array(place, { minLength: 1, maxLength: 3 }) },
);
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("enter" as const), places }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("leave" as const), which: fc.nat() }) },
);

/** The rules of the header and nothing else: a list in order of arrival, looked through from the start. */
class Model {
  live: { readonly id: number; readonly places: readonly Place[] }[] = [];

  granted(): Set<number> {
    return new Set(
      this.live
        .filter(({ places }, i) => !this.live.slice(0, i).some((older) => placesConflict(older.places, places)))
        .map(({ id }) => id),
    );
  }
}

describe("the state of the coordinator", () => {
  test("holds, after every step, exactly the requests no older live one conflicts with", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const state = new CoordinatorState<number>();
        const model = new Model();
        const live = new Map<number, PermitRequest<number>>();
        let ids = 0;
        for (const next of [...steps, ...Array.from({ length: 60 }, () => ({ do: "leave" as const, which: 0 }))]) {
          if (next.do === "enter") {
            const id = ids++;
            live.set(id, state.enter(next.places, id));
            model.live.push({ id, places: next.places });
          } else if (live.size > 0) {
            const before = model.granted();
            const [id, request] = [...live][next.which % live.size] as [number, PermitRequest<number>];
            live.delete(id);
            model.live = model.live.filter((other) => other.id !== id);
            const woken = state.leave(request).map(({ tag }) => tag);
            expect(woken).toEqual([...model.granted()].filter((other) => !before.has(other)));
          }
          const granted = new Set([...live].filter(([, request]) => request.granted).map(([id]) => id));
          expect(granted).toEqual(model.granted());
          expect(state.held).toBe(granted.size);
          expect(state.waiting).toBe(live.size - granted.size);
          expect(state.live().map(({ tag }) => tag)).toEqual(model.live.map(({ id }) => id));
          for (const request of live.values()) {
            expect(state.blockers(request).size === 0).toBe(request.granted);
          }
        }
        expect(state.empty).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test("lets every number of owners that hold and wait finish, because a circle is found when it closes", () => {
    const claims = fc.array(
      fc.record({ owner: fc.integer({ min: 0, max: 3 }), places: fc.array(place, { minLength: 1, maxLength: 2 }) }),
      { maxLength: 25 },
    );
    fc.assert(
      fc.property(claims, (list) => {
        const state = new CoordinatorState<number>();
        const owners = [{}, {}, {}, {}];
        const live = new Set<PermitRequest<number>>();
        for (const { owner, places } of list) {
          const request = state.enter(places, owner, owners[owner]);
          if (state.circle(request) !== undefined) state.leave(request);
          else live.add(request);
        }
        // An owner gives everything back once it has all it asked for, and not before.
        const waits = (owner: number): boolean => [...live].some(({ tag, granted }) => tag === owner && !granted);
        for (let round = 0; round < owners.length; round++) {
          for (const request of [...live].filter(({ tag }) => !waits(tag))) {
            live.delete(request);
            state.leave(request);
          }
        }
        expect(live.size).toBe(0);
        expect(state.empty).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  test("says what a waiting request waits for", () => {
    const state = new CoordinatorState<string>();
    state.enter([["a"]], "a");
    state.enter([["b", "x"]], "b/x");
    state.enter([["c"]], "c");
    const request = state.enter([["a", "y"], ["b"]], "both");
    expect([...state.blockers(request)].map(({ tag }) => tag).sort()).toEqual(["a", "b/x"]);
  });

  test("refuses to let a request leave twice", () => {
    const state = new CoordinatorState<string>();
    const request = state.enter([["a"]], "a");
    state.leave(request);
    expect(() => state.leave(request)).toThrow(/BUG/);
  });
});

/**
 * Who may hold which part of the tree, and who waits: the decisions of the coordinator, without promises or signals.
 *
 * A request claims places: paths below the root, or the root itself ("whole-mutation" and "checkpoint" claim that). Two
 * requests conflict when a place of one is a place of the other, above it, or below it. The rules, cited by number:
 *
 *   1. A request is granted when no older live request conflicts with it. Live is: held or waiting.
 *   2. All places of a request are granted together or none is.
 *   3. A request that leaves, held or waiting, frees exactly those that waited for it alone; they are granted at once,
 *      oldest first.
 *
 * From 1 follow exclusion (of two conflicting live requests at most the older is held) and fairness (C2): nobody passes an
 * older request it conflicts with, and nobody waits for one it does not.
 *
 * Places form a tree of names. Every node on the way to a place lists, in order of arrival, the requests that claim the
 * node itself (`own`) and those that claim it or anything below it (`below`). "Is there an older one?" is then a look at
 * the heads of a few lists, whatever the number of requests, and a leaving request looks only at those it blocked.
 */
import { invariant } from "../core/index.js";

/** Names from the root to a place; none for the root itself. */
export type Place = readonly string[];

export class PermitRequest<Tag = unknown> {
  /** Order of arrival. */
  readonly age: number;
  readonly places: readonly Place[];
  /** The caller's own note on it. */
  readonly tag: Tag;
  /** Who does not give back what it holds before it gets what it waits for; undefined when nobody knows. */
  readonly owner: object | undefined;
  granted = false;
  /** Where it is listed; empty once it has left. */
  readonly claims: Claim<Tag>[] = [];

  constructor(age: number, places: readonly Place[], tag: Tag, owner: object | undefined) {
    this.age = age;
    this.places = places;
    this.tag = tag;
    this.owner = owner;
  }
}

/** One place of one request. */
interface Claim<Tag> {
  readonly node: Node<Tag>;
  readonly own: Item<Tag>;
  /** Its items in `below` of its node and of every node above that, nearest first. */
  readonly below: readonly Item<Tag>[];
}

/** An element of a doubly linked list, so that a cancelled request leaves from the middle at once. */
interface Item<Tag> {
  readonly request: PermitRequest<Tag>;
  previous: Item<Tag> | undefined;
  next: Item<Tag> | undefined;
}

class List<Tag> {
  head: Item<Tag> | undefined;
  #tail: Item<Tag> | undefined;

  append(request: PermitRequest<Tag>): Item<Tag> {
    const item: Item<Tag> = { request, previous: this.#tail, next: undefined };
    if (this.#tail === undefined) this.head = item;
    else this.#tail.next = item;
    this.#tail = item;
    return item;
  }

  remove(item: Item<Tag>): void {
    if (item.previous === undefined) this.head = item.next;
    else item.previous.next = item.next;
    if (item.next === undefined) this.#tail = item.previous;
    else item.next.previous = item.previous;
  }

  hasOlderThan(request: PermitRequest<Tag>): boolean {
    return this.head !== undefined && this.head.request.age < request.age;
  }
}

class Node<Tag> {
  readonly parent: Node<Tag> | undefined;
  readonly name: string;
  readonly own = new List<Tag>();
  readonly below = new List<Tag>();
  /** Made on demand: most nodes are leaves and live for one permit. */
  children: Map<string, Node<Tag>> | undefined;

  constructor(parent: Node<Tag> | undefined, name: string) {
    this.parent = parent;
    this.name = name;
  }
}

export class CoordinatorState<Tag> {
  readonly #root = new Node<Tag>(undefined, "");
  #arrivals = 0;
  #held = 0;
  #waiting = 0;

  get held(): number {
    return this.#held;
  }
  get waiting(): number {
    return this.#waiting;
  }

  /** Whether nobody is listed, and no part of the tree is remembered for anybody. */
  get empty(): boolean {
    return this.#root.below.head === undefined && (this.#root.children?.size ?? 0) === 0;
  }

  /** Enters a request for the places; `granted` says whether it holds them now (rule 1) or waits. */
  enter(places: readonly Place[], tag: Tag, owner?: object): PermitRequest<Tag> {
    const request = new PermitRequest(++this.#arrivals, withoutCovered(places), tag, owner);
    for (const place of request.places) this.#claim(request, place);
    if (this.#isBlocked(request)) this.#waiting++;
    else this.#grant(request);
    return request;
  }

  /** Takes a held or waiting request out; returns those granted thereby (rule 3). Once only. */
  leave(request: PermitRequest<Tag>): readonly PermitRequest<Tag>[] {
    invariant(request.claims.length > 0, "BUG: a request leaves the coordinator twice");
    if (request.granted) this.#held--;
    else this.#waiting--;
    for (const claim of request.claims) unlist(claim);
    const granted: PermitRequest<Tag>[] = [];
    for (const claim of request.claims) this.#wake(claim.node, granted);
    // Pruned only now: a node that was taken off would not be found by a request that still refers to it.
    for (const claim of request.claims) prune(claim.node);
    request.claims.length = 0;
    return granted.length > 1 ? granted.sort((a, b) => a.age - b.age) : granted;
  }

  /** The older live requests that conflict with this one: what a waiting request waits for. */
  blockers(request: PermitRequest<Tag>): ReadonlySet<PermitRequest<Tag>> {
    const found = new Set<PermitRequest<Tag>>();
    const collect = (list: List<Tag>): void => {
      for (let item = list.head; item !== undefined && item.request.age < request.age; item = item.next) {
        found.add(item.request);
      }
    };
    for (const { node } of request.claims) {
      collect(node.below);
      for (let above = node.parent; above !== undefined; above = above.parent) collect(above.own);
    }
    return found;
  }

  /**
   * A request that waits for ever if this one waits: reached from it by "waits for" and "its owner waits for", and of its
   * own owner. Undefined when there is none. Only a new request can close such a circle, so each is asked once, on entry,
   * and only when its owner has others; it may look at every pair of live requests.
   */
  circle(request: PermitRequest<Tag>): PermitRequest<Tag> | undefined {
    if (request.owner === undefined || request.granted) return undefined;
    const waiting = this.live().filter((other) => !other.granted);
    const seen = new Set([request]);
    const next = [request];
    for (let current = next.pop(); current !== undefined; current = next.pop()) {
      for (const blocker of this.blockers(current)) {
        if (blocker.owner === request.owner) return blocker;
        const { owner } = blocker;
        for (const follows of owner === undefined
          ? [blocker]
          : [blocker, ...waiting.filter((w) => w.owner === owner)]) {
          if (seen.has(follows) || follows.granted) continue;
          seen.add(follows);
          next.push(follows);
        }
      }
    }
    return undefined;
  }

  /** All live requests, oldest first. */
  live(): readonly PermitRequest<Tag>[] {
    const all = new Set<PermitRequest<Tag>>();
    for (let item = this.#root.below.head; item !== undefined; item = item.next) all.add(item.request);
    return [...all];
  }

  #claim(request: PermitRequest<Tag>, place: Place): void {
    let node = this.#root;
    const below = [node.below.append(request)];
    for (const name of place) {
      node.children ??= new Map();
      let child = node.children.get(name);
      if (child === undefined) node.children.set(name, (child = new Node<Tag>(node, name)));
      node = child;
      below.push(node.below.append(request));
    }
    request.claims.push({ node, own: node.own.append(request), below: below.reverse() });
  }

  #isBlocked(request: PermitRequest<Tag>): boolean {
    return request.claims.some(({ node }) => {
      if (node.below.hasOlderThan(request)) return true;
      for (let above = node.parent; above !== undefined; above = above.parent) {
        if (above.own.hasOlderThan(request)) return true;
      }
      return false;
    });
  }

  #grant(request: PermitRequest<Tag>): void {
    request.granted = true;
    this.#held++;
  }

  #wakeOne(request: PermitRequest<Tag>, granted: PermitRequest<Tag>[]): void {
    if (request.granted || this.#isBlocked(request)) return;
    this.#waiting--;
    this.#grant(request);
    granted.push(request);
  }

  /** Grants whom a claim on `node` alone held up: the oldest claim of each node above, and those at or below the node. */
  #wake(node: Node<Tag>, granted: PermitRequest<Tag>[]): void {
    let oldestAbove = Infinity;
    for (let above = node.parent; above !== undefined; above = above.parent) {
      const head = above.own.head?.request;
      if (head === undefined) continue;
      this.#wakeOne(head, granted);
      oldestAbove = Math.min(oldestAbove, head.age);
    }
    const oldestOwn = node.own.head?.request.age ?? Infinity;
    // Whoever is younger than a claim here or above waits for that one, and need not be looked at.
    for (let item = node.below.head; item !== undefined; item = item.next) {
      const { request } = item;
      if (request.age > oldestAbove || request.age > oldestOwn) break;
      this.#wakeOne(request, granted);
    }
  }
}

/** Whether requests for these places conflict. */
export const placesConflict = (a: readonly Place[], b: readonly Place[]): boolean =>
  a.some((one) => b.some((other) => isAtOrBelow(one, other) || isAtOrBelow(other, one)));

const isAtOrBelow = (place: Place, ancestor: Place): boolean =>
  ancestor.length <= place.length && ancestor.every((name, i) => place[i] === name);

/** Drops places that another place of the same request covers, so that a request is listed once per part of the tree. */
function withoutCovered(places: readonly Place[]): readonly Place[] {
  if (places.length === 1) return places;
  const keyOf = (place: Place, length: number): string => place.slice(0, length).join("/");
  const byKey = new Map(places.map((place) => [keyOf(place, place.length), place]));
  const isCovered = (place: Place): boolean => {
    // The root's own key is that of no names, which is the empty one.
    for (let length = 0; length < place.length; length++) if (byKey.has(keyOf(place, length))) return true;
    return false;
  };
  return [...byKey.values()].filter((place) => !isCovered(place));
}

function unlist<Tag>(claim: Claim<Tag>): void {
  claim.node.own.remove(claim.own);
  let node: Node<Tag> | undefined = claim.node;
  for (const item of claim.below) {
    invariant(node !== undefined, "BUG: a claim is listed above the root");
    node.below.remove(item);
    node = node.parent;
  }
}

/** Removes the nodes that nobody claims any more, from the leaf up. */
function prune<Tag>(leaf: Node<Tag>): void {
  for (let node = leaf; node.below.head === undefined && node.parent !== undefined; node = node.parent) {
    node.parent.children?.delete(node.name);
  }
}

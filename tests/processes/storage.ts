/**
 * A process on a state directory, for tests of what several of them do to each other.
 * Arguments: the directory, what to do, and its own arguments; see the cases. Every line it prints is something that is done.
 */
import { isLooprigError, mintSessionId } from "../../src/core/index.js";
import { openLocalStorage } from "../../src/storage-local/index.js";

const [dir = "", action = "", ...rest] = process.argv.slice(2);
const storage = await openLocalStorage({ dir });
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const heard = (): Promise<void> => new Promise((resolve) => process.stdin.once("data", () => resolve()));
const claim = { sessionId: mintSessionId(), command: `test ${action}` };

/** Runs `call` again while it is refused with one of `codes`. */
async function until<T>(call: () => Promise<T>, ...codes: Parameters<typeof isLooprigError>[1][]): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isLooprigError(error, ...codes)) throw error;
    }
  }
}

switch (action) {
  // ledger, own mark, count: appends that many records "mark i", each at whatever head there is.
  case "append": {
    const [ledger = "", mark = "", count = ""] = rest;
    for (let i = 0; i < Number(count); i++) {
      const head = await until(async () => {
        const expectedHead = await storage.ledger.head(ledger);
        return storage.ledger.append(ledger, [Buffer.from(`${mark} ${i}`)], { expectedHead, epoch: 1 });
      }, "ledger.conflict");
      say(String(head));
    }
    break;
  }
  // key, count: adds one to the decimal number under the key that many times.
  case "increment": {
    const [key = "", count = ""] = rest;
    for (let i = 0; i < Number(count); i++) {
      await until(async () => {
        const entry = await storage.kv.get(key);
        const value = entry === undefined ? 0 : Number(Buffer.from(entry.value).toString());
        return storage.kv.set(key, Buffer.from(String(value + 1)), { revision: entry?.revision ?? 0 });
      }, "kv.conflict");
      say("+1");
    }
    break;
  }
  // name: takes the lease, says its epoch, and holds it until it hears something or is killed.
  case "hold": {
    const lease = await storage.leaser.acquire(rest[0] ?? "", claim);
    say(String(lease.epoch));
    await heard();
    await lease.release();
    break;
  }
  // name, count: takes and releases the lease that many times, alone in a section marked by a blob, which must never exist before.
  case "contend": {
    const [name = "", count = ""] = rest;
    for (let i = 0; i < Number(count); i++) {
      const lease = await until(() => storage.leaser.acquire(name, claim), "lease.held");
      if (!(await storage.blobs.put("inside", [Buffer.of(1)]))) throw new Error("two holders at once");
      lease.assertHeld();
      await storage.blobs.delete("inside");
      say(String(lease.epoch));
      await lease.release();
    }
    break;
  }
  // name, count: acquires and releases a lease that nobody else takes, that many times, which must never be refused.
  case "undisturbed": {
    const [name = "", count = ""] = rest;
    for (let i = 0; i < Number(count); i++) await (await storage.leaser.acquire(name, claim)).release();
    say("never refused");
    break;
  }
  // name: inspects the lease until it hears something; says how often somebody was seen.
  case "inspect": {
    const stop = new AbortController();
    void heard().then(() => stop.abort());
    say("looking");
    let seen = 0;
    while (!stop.signal.aborted) {
      if ((await storage.leaser.inspect(rest[0] ?? "")) !== undefined) seen++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    say(String(seen));
    break;
  }
  // key, size: creates the blob, filled with a byte of its own; says whether it was the one to create it.
  case "put": {
    const [key = "", size = ""] = rest;
    say(String(await storage.blobs.put(key, [Buffer.alloc(Number(size), process.pid & 0xff)])));
    break;
  }
  default:
    throw new Error(`no action "${action}"`);
}
await storage.close();
process.exit(0);

/** The suites of all contracts, on the real engine (G1). */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { storageConformance } from "../storage/testing/index.js";
import { openLocalStorage } from "./open.js";
import { openSqlite } from "./sqlite.js";

const made: string[] = [];
const dirOf = (storage: { persistencePaths(): readonly string[] }): string => storage.persistencePaths()[0] ?? "";

storageConformance("local", {
  open: () => {
    const parent = fs.mkdtempSync(path.join(os.tmpdir(), "looprig-"));
    made.push(parent);
    return openLocalStorage({ dir: path.join(parent, "state") });
  },
  reopen: (storage) => openLocalStorage({ dir: dirOf(storage) }),
  damageRecord: (storage, ledger, seq) => {
    const sql = openSqlite(path.join(dirOf(storage), "state.db"));
    sql.run(
      "UPDATE records SET body = CAST('X' || substr(body, 2) AS BLOB) WHERE seq = ? AND ledger = (SELECT id FROM ledgers WHERE name = ?)",
      [seq, ledger],
    );
    sql.close();
  },
  dispose: () => {
    for (const dir of made.splice(0)) fs.rmSync(dir, { recursive: true, force: true });
  },
});

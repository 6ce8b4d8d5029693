// Loaded by `node --import` before a command, to write down at its end what memory it took.
import fs from "node:fs";
import { peakMemory } from "./peak-memory.mjs";

process.on("exit", () => fs.writeFileSync(process.env.BENCH_PEAK_MEMORY_FILE, String(peakMemory())));

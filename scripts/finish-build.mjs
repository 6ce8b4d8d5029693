// After tsc: the command line's entry is made executable, as npm's bin links expect.
import { chmodSync, existsSync } from "node:fs";

const entry = new URL("../dist/cli/main.js", import.meta.url);
if (existsSync(entry)) chmodSync(entry, 0o755);

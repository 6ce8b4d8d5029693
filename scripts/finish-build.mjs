// After tsc: its JavaScript is bundled, and the command line's entry made executable, as npm's bin links expect.
import { chmodSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.mjs";

const dist = fileURLToPath(new URL("../dist", import.meta.url));
await bundle(dist);
chmodSync(`${dist}/cli/main.js`, 0o755);

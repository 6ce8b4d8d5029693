/** The entry `looprig/tools`: the built-in tools, and what a tool of one's own is defined with. */
export { bash, fileTools } from "./builtin-tools/index.js";
export type { BashInput, BashOptions, FileToolName } from "./builtin-tools/index.js";

export { bash } from "./bash.js";
export type { BashInput, BashOptions } from "./bash.js";
export { fileTools } from "./file-tools.js";
export type { FileToolName } from "./file-tools.js";

export { examineStateDirectory } from "./examine.js";
export type { ExamineOptions, StateExamination, StateTrouble } from "./examine.js";
export { localStateDir, openLocalStorage } from "./open.js";
export type { LocalStorageOptions } from "./open.js";
export { defaultStateDir } from "./state-dir.js";

/** For tests of the whole: what a model is sent of a conversation. */
export { toPrompt } from "./prompt.js";

export { blobsConformance } from "./blobs-conformance.js";
export type { ConformanceOptions } from "./conformance.js";
export { kvConformance } from "./kv-conformance.js";
export { leaserConformance } from "./leaser-conformance.js";
export { ledgerConformance } from "./ledger-conformance.js";
export { storageConformance } from "./storage-conformance.js";

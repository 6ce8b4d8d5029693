/** The entry `looprig/testing`: what a backend's own tests need. It imports vitest, an optional peer of the package. */
export {
  blobsConformance,
  kvConformance,
  leaserConformance,
  ledgerConformance,
  storageConformance,
} from "./storage/testing/index.js";
export type { ConformanceOptions } from "./storage/testing/index.js";

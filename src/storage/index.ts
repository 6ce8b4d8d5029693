export type {
  BlobInfo,
  Blobs,
  Kv,
  KvEntry,
  Lease,
  LeaseClaim,
  LeaseInfo,
  Leaser,
  Ledger,
  LedgerRecord,
  Storage,
  StorageDisk,
  StorageKey,
} from "./contracts.js";
export {
  appendRecordsMax,
  blobBytesMax,
  checkAppend,
  checkCount,
  checkKey,
  checkPrefix,
  checkPut,
  checkSet,
  keyBytesMax,
  kvValueBytesMax,
  recordBytesMax,
} from "./limits.js";
export { createMemoryStorage } from "./memory.js";
export type { MemoryStorageOptions } from "./memory.js";
export { describeHolder } from "./holder.js";
export {
  blobMissing,
  kvConflict,
  leaseHeld,
  leaseLost,
  ledgerConflict,
  ledgerDamaged,
  ledgerFenced,
  storageClosed,
} from "./refusals.js";

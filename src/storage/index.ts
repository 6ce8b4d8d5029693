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
  StorageKey,
} from "./contracts.js";

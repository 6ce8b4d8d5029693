/**
 * Whether a state directory may live on a file system (G4). Locks on a network file system may be private to each machine,
 * lost with a connection or not there at all, and shared memory between machines never works; so these are refused.
 *
 * Only the number of statfs(2) is looked at. FUSE has one number for local and remote file systems (sshfs beside
 * fuse-overlayfs, on which whole containers run): it is let pass, and the documentation says so.
 */
const networkTypes: ReadonlyMap<number, string> = new Map([
  [0x6969, "nfs"],
  [0x517b, "smb"],
  [0xff534d42, "cifs"],
  [0xfe534d42, "smb2"],
  [0x564c, "ncp"],
  [0x01021997, "9p"],
  [0x5346414f, "afs"],
  [0x6b414653, "afs"],
  [0x73757245, "coda"],
  [0x00c36400, "ceph"],
  [0x0bd00bd0, "lustre"],
  [0x47504653, "gpfs"],
  [0x01161970, "gfs2"],
  [0x7461636f, "ocfs2"],
  [0x19830326, "beegfs"],
  [0xaad7aaea, "panfs"],
  [0x20030528, "pvfs2"],
  [0x786f4256, "vboxsf"],
]);

/** The name of the network file system a Linux `statfs` type number stands for, or undefined for a local one. */
export function networkFileSystem(type: number): string | undefined {
  // The kernel's field is signed on some architectures and wider than the number on others.
  return networkTypes.get(Number(BigInt.asUintN(32, BigInt(type))));
}

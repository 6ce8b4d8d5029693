import { expect, test } from "vitest";
import { networkFileSystem } from "./network-file-system.js";

test("network file systems are known by their number", () => {
  expect(networkFileSystem(0x6969)).toBe("nfs");
  expect(networkFileSystem(0xff534d42)).toBe("cifs");
  expect(networkFileSystem(0xfe534d42)).toBe("smb2");
  expect(networkFileSystem(0x01021997)).toBe("9p");
  expect(networkFileSystem(0x00c36400)).toBe("ceph");
});

test("a number whose high bit made it negative is the same number", () => {
  expect(networkFileSystem(0xff534d42 - 2 ** 32)).toBe("cifs");
});

test("local file systems pass, and FUSE, which cannot be told", () => {
  const ext4 = 0xef53;
  const tmpfs = 0x01021994;
  const btrfs = 0x9123683e;
  const xfs = 0x58465342;
  const overlay = 0x794c7630;
  const zfs = 0x2fc12fc1;
  const fuse = 0x65735546;
  for (const type of [ext4, tmpfs, btrfs, xfs, overlay, zfs, fuse]) expect(networkFileSystem(type)).toBeUndefined();
});

/** `looprig doctor`: a line for what was looked at, a line for each finding, a line that sums up. Pure. */
import { bytes, count } from "./amounts.js";
import type { Finding } from "./doctor/finding.js";
import { displayRoot } from "./spelling.js";
import type { Style } from "./style.js";

export interface DoctorData {
  readonly dir: string;
  readonly format: number | undefined;
  readonly freeBytes: number | undefined;
  readonly spoolBytes: number;
  /** Undefined where the store could not be opened. */
  readonly store: { readonly bytes: number; readonly packs: number } | undefined;
  readonly sessions: number | undefined;
  readonly roots: number | undefined;
  readonly findings: readonly Finding[];
}

export interface DoctorView {
  readonly home: string;
  readonly style: Style;
}

export function doctorText(data: DoctorData, { home, style }: DoctorView): string {
  const { dir, format, freeBytes, store, sessions, roots, findings } = data;
  const facts = [
    ...(format === undefined ? [] : [`format ${format}`]),
    ...(store === undefined ? [] : [bytes(store.bytes)]),
    ...(sessions === undefined ? [] : [count(sessions, "session")]),
    ...(roots === undefined ? [] : [count(roots, "root")]),
    ...(freeBytes === undefined ? [] : [`${bytes(freeBytes)} free`]),
  ];
  const problems = findings.filter(({ level }) => level === "problem");
  const lines = [
    `${style.bold(displayRoot(dir, home))}${facts.length === 0 ? "" : `   ${facts.join(", ")}`}`,
    ...(findings.length === 0 ? [] : [""]),
    ...[...problems, ...findings.filter(({ level }) => level === "note")].map((finding) => line(finding, style)),
    "",
    problems.length === 0
      ? "Nothing is wrong. looprig verify reads the bytes themselves."
      : `${count(problems.length, "problem")}. Files in your roots are not touched by any of this.`,
  ];
  return lines.map((each) => `${each}\n`).join("");
}

function line({ level, text, mend }: Finding, style: Style): string {
  const mark = level === "problem" ? style.red("!") : style.dim("·");
  return `  ${mark} ${text}${mend === undefined ? "" : style.dim(`   ${mend}`)}`;
}

/** The fields of `looprig.doctor/1`. */
export const doctorDocument = (data: DoctorData): object => ({
  healthy: data.findings.every(({ level }) => level !== "problem"),
  state: {
    dir: data.dir,
    format: data.format ?? null,
    freeBytes: data.freeBytes ?? null,
    spoolBytes: data.spoolBytes,
    storeBytes: data.store?.bytes ?? null,
    packs: data.store?.packs ?? null,
    sessions: data.sessions ?? null,
    roots: data.roots ?? null,
  },
  findings: data.findings.map(({ level, check, text, mend }) => ({ level, check, message: text, mend: mend ?? null })),
});

/** Colour is meaning repeated, never meaning alone: every text reads the same without it. */

export interface Style {
  readonly dim: (text: string) => string;
  readonly bold: (text: string) => string;
  readonly red: (text: string) => string;
  readonly green: (text: string) => string;
  readonly yellow: (text: string) => string;
  readonly cyan: (text: string) => string;
}

const same = (text: string): string => text;
const wrap =
  (open: number, close: number) =>
  (text: string): string =>
    text === "" ? "" : `\u001b[${open}m${text}\u001b[${close}m`;

export const plainStyle: Style = { dim: same, bold: same, red: same, green: same, yellow: same, cyan: same };

const colourStyle: Style = {
  dim: wrap(2, 22),
  bold: wrap(1, 22),
  red: wrap(31, 39),
  green: wrap(32, 39),
  yellow: wrap(33, 39),
  cyan: wrap(36, 39),
};

/** Colour only on a terminal, and not where NO_COLOR (set and not empty), TERM=dumb or --no-color say otherwise. */
export function styleFor(wish: {
  readonly terminal: boolean;
  readonly noColor: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}): Style {
  const refused = wish.noColor || (wish.env["NO_COLOR"] ?? "") !== "" || wish.env["TERM"] === "dumb";
  return wish.terminal && !refused ? colourStyle : plainStyle;
}

/** The options of commands that capture: what stays out, and consent to a large tree. Both are kept with the root. */
import type { CaptureSettings } from "../workspace/index.js";
import { flag, list, text } from "./args.js";
import type { OptionValues } from "./args.js";

export const captureOptions = {
  exclude: list(["--exclude"], {
    value: "GLOB",
    wanted: "a gitignore line",
    parse: (given) => (/[\n\r\0]/.test(given) ? undefined : text(given)),
    help: "leave out what this gitignore line fits; repeatable; kept with the root",
  }),
  allowLarge: flag(["--allow-large"], "capture more than 4 GiB or 500 000 files; kept with the root"),
} as const;

export const captureSettings = (options: OptionValues<typeof captureOptions>): CaptureSettings => ({
  ...(options.exclude.length === 0 ? {} : { exclude: options.exclude }),
  ...(options.allowLarge ? { allowLarge: true } : {}),
});

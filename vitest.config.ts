import { configDefaults, defineConfig } from "vitest/config";

/** Looks at which modules are loaded, so it must be the first in its process. */
const alone = ["src/tool/json-schema-compiler.test.ts"];

export default defineConfig({
  test: {
    typecheck: { enabled: false },
    // Whole-system tests start real processes; the machines that run them have two cores and other work.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    // The default leaves a core to whoever watches; most of these tests wait for disks and processes anyway.
    maxWorkers: "100%",
    projects: [
      { extends: true, test: { name: "alone", include: alone } },
      {
        extends: true,
        test: {
          name: "suite",
          include: ["src/**/*.test.ts", "tests/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...alone],
          // Test files share nothing but modules, which have no state between them: loading those once saves a minute.
          isolate: false,
        },
      },
    ],
  },
});

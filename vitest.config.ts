import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "tests/**/*.test.ts"],
    typecheck: { enabled: false },
    // Whole-system tests start real processes; the machines that run them have two cores and other work.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
  },
});

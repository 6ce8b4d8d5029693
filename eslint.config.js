import eslint from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  {
    ignores: ["dist/", ".looprig-api/", "coverage/", "node_modules/", "examples/broken-calculator/", "tests/fixtures/"],
  },
  eslint.configs.recommended,
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      // An async method may satisfy an async contract without awaiting anything itself.
      "@typescript-eslint/require-await": "off",
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // `Record<never, never>` says "no members" in the table of events, which is what the rule warns of.
      "@typescript-eslint/no-generated-empty-object-type": "off",
      // `using _permit = …` holds something for its scope, and `_` drops a member in destructuring.
      "@typescript-eslint/no-unused-vars": [
        "error",
        { varsIgnorePattern: "^_", argsIgnorePattern: "^_", ignoreRestSiblings: true },
      ],
      // Control characters are legal in file names, which is what many of our patterns are about.
      "no-control-regex": "off",
    },
  },
  {
    files: ["**/*.{js,mjs}"],
    languageOptions: {
      globals: {
        process: "readonly",
        console: "readonly",
        Buffer: "readonly",
        URL: "readonly",
        performance: "readonly",
        setTimeout: "readonly",
        setImmediate: "readonly",
      },
    },
  },
);

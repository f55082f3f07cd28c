// Unit tests of the extension and its panel; what needs VS Code itself is in tests/editor.

import { defineConfig } from "vitest/config";
import { ROOT, workFolder } from "./places.mjs";

export default defineConfig({
  root: ROOT,
  cacheDir: workFolder("vitest"),
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    include: ["extension/{src,webview,test}/**/*.test.{ts,tsx}", "tests/extension/**/*.test.{ts,tsx}"],
    exclude: ["**/node_modules/**", "**/dist/**"],
    passWithNoTests: true,
    restoreMocks: true,
  },
});

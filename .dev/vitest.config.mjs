// Unit tests of the extension and its panel; what needs VS Code itself is in tests/editor.

import { defineConfig } from "vitest/config";
import { at, ROOT, workFolder } from "./places.mjs";

export default defineConfig({
  root: ROOT,
  cacheDir: workFolder("vitest"),
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  // Fast tests of what talks to the editor: a small one of ours stands in for it.
  resolve: { alias: { vscode: at("extension", "test", "editor", "vscode.ts") } },
  test: {
    // Each file has a context of its own, and not a process with a page that is loaded anew: half the time.
    pool: "vmThreads",
    include: ["extension/{src,webview,test}/**/*.test.{ts,tsx}", "tests/extension/**/*.test.{ts,tsx}"],
    exclude: ["**/node_modules/**", "**/dist/**"],
    passWithNoTests: true,
    restoreMocks: true,
  },
});

// Bundles the extension and its panel into extension/dist; `--watch` goes on when a source changes.

import { existsSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { writeNotices } from "./notices.mjs";
import { at } from "./places.mjs";
import { main, say, seconds, Trouble } from "./say.mjs";
import { ensureModules, ensureNode } from "./setup.mjs";

const SHARED = {
  bundle: true,
  sourcemap: "linked",
  logLevel: "warning",
  legalComments: "none", // dist/NOTICES.txt has the licenses of all packages
  metafile: true,
  outdir: at("extension", "dist"),
};
const IN_EDITOR = {
  platform: "node",
  format: "cjs",
  target: "node20",
  mainFields: ["module", "main"],
  // What is loaded later is a CommonJS file: Node's `import()` would not find it without its ending.
  supported: { "dynamic-import": false },
};
/**
 * The editor's interface, asked for once: esbuild would copy all of its names for each file that imports it, which
 * took most of the time that the editor waits for an extension to load.
 */
const VSCODE_ONCE = {
  name: "vscode-once",
  setup(build) {
    build.onResolve({ filter: /^vscode$/ }, ({ namespace }) =>
      namespace === "vscode-once" ? { path: "vscode", external: true } : { path: "vscode", namespace: "vscode-once" },
    );
    build.onLoad({ filter: /^vscode$/, namespace: "vscode-once" }, () => {
      const types = readFileSync(at("node_modules", "@types", "vscode", "index.d.ts"), "utf8");
      const declared = /^(?:\t| {4})export (?:abstract )?(?:namespace|class|enum|const|function) (\w+)/gm;
      const names = new Set([...types.matchAll(declared)].map(([, name]) => name));
      const exported = [...names].map((name) => `export const ${name} = /* @__PURE__ */ (() => api.${name})();`);
      return { contents: ['const api = require("vscode");', ...exported].join("\n") };
    });
  },
};
const BUNDLES = [
  // The language client is a file of its own: its library is five times the extension, and activation need not read it.
  { entry: "extension/src/extension.ts", options: { ...IN_EDITOR, external: ["./client"], plugins: [VSCODE_ONCE] } },
  { entry: "extension/src/server/client.ts", options: { ...IN_EDITOR, external: ["vscode"] } },
  {
    entry: "extension/webview/main.tsx",
    options: {
      platform: "browser",
      format: "iife",
      target: "es2022",
      jsx: "automatic",
      jsxImportSource: "preact",
      loader: { ".svg": "text", ".ttf": "dataurl", ".woff2": "dataurl" },
    },
  },
];

/** One set of esbuild options a bundle whose source is there. */
function bundles(production) {
  const define = { "process.env.NODE_ENV": JSON.stringify(production ? "production" : "development") };
  return BUNDLES.filter(({ entry }) => existsSync(at(...entry.split("/")))).map(({ entry, options }) => ({
    ...SHARED,
    ...options,
    define,
    minify: production,
    entryPoints: { [entry.includes("webview") ? "webview" : path.basename(entry, ".ts")]: at(...entry.split("/")) },
  }));
}

/** Return what esbuild says of every bundle, without writing any. */
export async function describeBundles() {
  const esbuild = await import("esbuild");
  const built = bundles(true).map((options) => esbuild.build({ ...options, write: false, minify: false }));
  return (await Promise.all(built)).map(({ metafile }) => metafile);
}

/** Builds everything once. */
export async function build({ production = true } = {}) {
  const since = Date.now();
  await ensureNode();
  await ensureModules();
  const esbuild = await import("esbuild");
  rmSync(at("extension", "dist"), { recursive: true, force: true });
  try {
    const built = await Promise.all(bundles(production).map((options) => esbuild.build(options)));
    writeNotices(
      built.map(({ metafile }) => metafile),
      process.cwd(),
      at("extension", "dist", "NOTICES.txt"),
    );
  } catch (error) {
    if (error instanceof Trouble) throw error;
    throw new Trouble("the extension does not build: see above"); // esbuild has said why, with the place.
  }
  say(`extension built: ${seconds(since)}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    await build({ production: !process.argv.includes("--watch") });
    if (!process.argv.includes("--watch")) return;
    const esbuild = await import("esbuild");
    for (const options of bundles(false)) await (await esbuild.context(options)).watch();
    say("watching; Ctrl-C ends it");
  });
}

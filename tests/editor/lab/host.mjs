// Mocha inside the real extension host: tests/editor/host/*.test.ts are bundled, run there, and their results read back.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { format } from "node:util";
import { build } from "esbuild";
import { startCodeServer } from "../../../.dev/codeserver.mjs";
import { at, workFolder } from "../../../.dev/places.mjs";
import { startBrowser } from "./browser.mjs";
import { makeWorkspace } from "./lab.mjs";
import { SHOTS, Workbench } from "./workbench.mjs";

const LIMIT = 400_000;

async function bundleTests() {
  const out = workFolder("host-tests");
  rmSync(out, { recursive: true, force: true });
  const source = at("tests", "editor", "host");
  const entryPoints = readdirSync(source)
    .filter((name) => /\.test\.(ts|mjs)$/.test(name))
    .map((name) => path.join(source, name));
  const options = {
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node22",
    sourcemap: "inline",
    external: ["vscode"],
  };
  await build({ ...options, entryPoints, outdir: out, outExtension: { ".js": ".cjs" }, logLevel: "warning" });
  return out;
}

/** Opens the editor so that it runs Daiku from source and then the tests; resolves with their exit code. */
async function runInPage(page, server, workspace) {
  let exit;
  const ended = new Promise((resolve) => {
    exit = resolve;
  });
  const said = [];
  await page.exposeFunction("codeAutomationLog", (kind, words) => said.push(`${kind}: ${format(...words)}`));
  await page.exposeFunction("codeAutomationExit", (code) => exit(code));
  page.on("crash", () => exit("the page crashed"));
  const remote = (file) => `vscode-remote://127.0.0.1:${server.port}${file}`;
  const payload = JSON.stringify([
    ["extensionDevelopmentPath", remote(at("extension"))],
    ["extensionTestsPath", remote(at("tests", "editor", "lab", "mocha-entry.cjs"))],
    ["skipWelcome", "true"],
  ]);
  await page.goto(`${server.url}/?folder=${encodeURIComponent(workspace)}&payload=${encodeURIComponent(payload)}`);
  const late = new Promise((resolve) => setTimeout(resolve, LIMIT, "no end in time").unref());
  return { code: await Promise.race([ended, late]), said };
}

/**
 * Runs the tests in the extension host. Answers with `{code, tests: [{title, ms, error?}], said}`;
 * `said` is what the window logged, for when something went wrong.
 */
export async function runHostTests({ files, env = {}, settings = {} } = {}) {
  const place = mkdtempSync(path.join(os.tmpdir(), "daiku-host-"));
  const results = path.join(place, "results.json");
  const workspace = makeWorkspace(files);
  const tests = await bundleTests();
  const home = path.join(place, "home");
  mkdirSync(home);
  const lab = {
    DAIKU_LAB_TESTS: tests,
    DAIKU_LAB_RESULTS: results,
    DAIKU_LAB_MOCHA: at("node_modules", "mocha"),
    DAIKU_LAB_FIXTURES: at("tests", "fixtures"),
    DAIKU_LAB_ROOT: at(),
  };
  const server = await startCodeServer({ testing: true, settings, env: { DAIKU_HOME: home, ...lab, ...env } });
  const browser = await startBrowser();
  try {
    const { code, said } = await runInPage(browser.page, server, workspace);
    const found = existsSync(results) ? JSON.parse(readFileSync(results, "utf8")) : [];
    const broken = code !== 0 || found.some((test) => test.error);
    if (broken) await new Workbench(browser.page).shot("failed-extension-host").catch(() => {});
    return { code, tests: found, said: broken ? [...said, `screenshots: ${SHOTS}`] : said };
  } finally {
    await browser.stop();
    await server.stop();
    for (const folder of [place, workspace]) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

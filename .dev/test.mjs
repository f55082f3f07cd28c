// All tests: Python, TypeScript, the extension inside a real VS Code, and a person's journey through the browser.

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { build } from "./build.mjs";
import { at, CACHE, nodeProgram, ROOT, workFolder } from "./places.mjs";
import { run } from "./run.mjs";
import { bold, main, say, seconds } from "./say.mjs";
import { ensureAll } from "./setup.mjs";

const report = (name) => path.join(workFolder("reports"), `${name}.xml`);
const minutes = (n) => n * 60_000;

const TEMPORARY_BYTES = 6 * 2 ** 30;

/**
 * Returns the command with a temporary folder of its own in memory: databases then wait for no disk. Where that cannot
 * be had (not Linux, not root, too little memory), it is the command as it was, on the disk.
 */
function inMemory(command, args) {
  const folder = realpathSync(os.tmpdir());
  const hides = [ROOT, CACHE].some((place) => path.resolve(place).startsWith(path.join(folder, path.sep)));
  const isPossible = process.platform === "linux" && !hides && os.freemem() > TEMPORARY_BYTES;
  if (!isPossible || spawnSync("unshare", ["--mount", "true"]).status !== 0) return { command, args };
  const mount = `mount -t tmpfs -o mode=1777,size=${TEMPORARY_BYTES} tmpfs "$0"; exec "$@"`;
  return { command: "unshare", args: ["--mount", "sh", "-c", mount, folder, command, ...args] };
}

/**
 * Python: unit, wire and command-line tests, on both cores. A single test is limited by pytest's settings; the limit of
 * the suite is only for a runner that hangs, as ending it hides which tests have failed.
 */
function pythonTests(python) {
  const options = ["-n", "2", "--dist=worksteal", "-q", "-m", "not bench", "--durations=20", "--durations-min=2"];
  const where = ["-o", `cache_dir=${workFolder("pytest")}`, `--junitxml=${report("python")}`];
  return { name: "python", ...inMemory(python, ["-m", "pytest", ...options, ...where]), timeout: minutes(75) };
}

function typescriptTests() {
  const vitest = at("node_modules", "vitest", "vitest.mjs");
  const reporters = ["--reporter=default", "--reporter=junit", `--outputFile.junit=${report("typescript")}`];
  const args = [vitest, "run", "--config", at(".dev", "vitest.config.mjs"), ...reporters];
  return { name: "typescript", command: nodeProgram, args, timeout: minutes(5) };
}

/**
 * What runs in a real VS Code, one file after the other: two editors at once would only slow each other down. Every wait
 * in a test has its own limit; that of the suite is for a runner that hangs. A slow machine needs 15 minutes.
 */
function editorTests() {
  const folder = at("tests", "editor");
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".test.mjs")) : [];
  const files = names.sort().map((name) => path.join(folder, name));
  const reporters = ["spec", "stdout", "junit", report("editor")];
  const words = reporters.map((value, i) => `--test-reporter${i % 2 ? "-destination" : ""}=${value}`);
  return {
    name: "editor",
    command: nodeProgram,
    args: ["--test", "--test-concurrency=1", ...words, ...files],
    timeout: minutes(30),
    files,
  };
}

/** Passed, failed and skipped of one runner's JUnit report; a runner that broke without saying so counts as one failure. */
function counts(name, code) {
  const file = report(name);
  const xml = existsSync(file) ? readFileSync(file, "utf8") : "";
  const count = (pattern) => xml.match(pattern)?.length ?? 0;
  const [total, failures, skipped] = [count(/<testcase\b/g), count(/<(failure|error)\b/g), count(/<skipped\b/g)];
  const failed = failures || (code === 0 ? 0 : 1);
  return { passed: Math.max(0, total - failures - skipped), failed, skipped };
}

/** Which suites the person asked for: all, or those named. */
function chosen(suites, names) {
  return names.length === 0 ? suites : suites.filter((suite) => names.includes(suite.name));
}

/** Writes the commit of a full green run into the cache; a checkout with changes has no commit to record. */
function recordGreen() {
  const git = (...args) => spawnSync("git", args, { cwd: at(), encoding: "utf8" });
  const [head, changes] = [git("rev-parse", "HEAD"), git("status", "--porcelain")];
  if (head.status === 0 && changes.status === 0 && changes.stdout.trim() === "")
    writeFileSync(path.join(CACHE, "green"), head.stdout);
}

await main(async () => {
  const since = Date.now();
  const { python, env, browser } = await ensureAll();
  const all = [pythonTests(python), typescriptTests(), editorTests()];
  const names = process.argv.slice(2);
  const suites = chosen(all, names);
  if (suites.some((suite) => suite.name === "editor")) await build({ production: true });
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const suite of suites) {
    if (suite.files?.length === 0) continue;
    if (suite.name === "editor" && !browser) {
      say("the tests in a real editor are left out: there is no Chromium");
      sum.skipped += suite.files.length;
      continue;
    }
    const start = Date.now();
    say(bold(`\n${suite.name}`));
    rmSync(report(suite.name), { force: true });
    const done = await run(suite.command, suite.args, { cwd: at(), env, timeout: suite.timeout, tee: true });
    if (done.late) say(`${suite.name}: stopped after ${suite.timeout / 60_000} minutes`);
    const result = counts(suite.name, done.code);
    for (const key of Object.keys(sum)) sum[key] += result[key];
    say(
      `${suite.name}: ${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped (${seconds(start)})`,
    );
  }
  say(`everything took ${seconds(since)}`);
  if (sum.failed === 0 && names.length === 0 && browser) recordGreen();
  process.stdout.write(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped\n`);
  return sum.failed === 0 && sum.passed > 0 ? 0 : 1;
});

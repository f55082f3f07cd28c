// What VS Code's extension host loads to run tests: Mocha over the bundled test files, results as JSON.

const { readdirSync, writeFileSync } = require("node:fs");
const path = require("node:path");

const Mocha = require(process.env.DAIKU_LAB_MOCHA);

/**
 * Whether an error that nobody caught was thrown by an extension that VS Code ships. All extensions share one process,
 * and its Git extension throws EPIPE where `git` ends before it has read its input.
 */
const isOfShipped = (error) => {
  const lines = String(error?.stack).split("\n");
  const thrown = lines.find((line) => /^\s+at /.test(line) && !line.includes("node:"));
  return /[\\/]vscode[\\/]extensions[\\/]/.test(thrown ?? "");
};

exports.run = () => {
  const folder = process.env.DAIKU_LAB_TESTS;
  const mocha = new Mocha({ ui: "bdd", color: false, timeout: 30_000, reporter: "spec" });
  if (process.env.DAIKU_LAB_GREP) mocha.grep(process.env.DAIKU_LAB_GREP);
  for (const name of readdirSync(folder).sort()) {
    if (name.endsWith(".cjs")) mocha.addFile(path.join(folder, name));
  }
  const results = [];
  const note = (test, error) =>
    results.push({ title: test.fullTitle(), ms: test.duration ?? 0, ...(error && { error }) });
  return new Promise((resolve, reject) => {
    const others = process.listeners("uncaughtException");
    const runner = mocha.run((failures) => {
      writeFileSync(process.env.DAIKU_LAB_RESULTS, JSON.stringify(results));
      if (failures > 0) reject(new Error(`${failures} failed`));
      else resolve();
    });
    // VS Code wraps each listener, so Mocha's is found as the one that was not there before.
    for (const listener of process.listeners("uncaughtException")) {
      if (!others.includes(listener)) process.off("uncaughtException", listener);
    }
    process.on("uncaughtException", (error) => {
      if (isOfShipped(error)) console.warn("not counted, of VS Code's own extension:", error);
      else runner.uncaught(error);
    });
    runner.on("pass", (test) => note(test));
    runner.on("fail", (test, error) => note(test, String(error?.stack ?? error)));
  });
};

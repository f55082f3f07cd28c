// Makes the lock files anew: package-lock.json and the Python ones. `--upgrade` also takes newer versions.

import { at } from "./places.mjs";
import { must, which } from "./run.mjs";
import { main, say } from "./say.mjs";
import { uv } from "./setup.mjs";

const COMPILE = [
  "pip",
  "compile",
  "--quiet",
  "--universal",
  "--python-version",
  "3.11",
  "--generate-hashes",
  "--no-emit-index-url",
  "--no-header",
];

await main(async () => {
  const program = await uv();
  const upgrade = process.argv.includes("--upgrade") ? ["--upgrade"] : [];
  const compile = (out, ...from) => must(out, program, [...COMPILE, ...upgrade, ...from, "-o", out], { cwd: at() });
  await compile(".dev/uv.txt", ".dev/uv.in");
  await compile(".dev/lab.txt", "--no-deps", ".dev/lab.in");
  await compile("server/requirements.txt", "pyproject.toml");
  await compile("server/requirements-dev.txt", "pyproject.toml", "-c", "server/requirements.txt", "--group", "dev");
  await compile("server/requirements-docs.txt", "pyproject.toml", "-c", "server/requirements.txt", "--group", "docs");
  say("Python locks: done");
  await must("npm", which("npm"), ["install", "--package-lock-only", "--ignore-scripts"], { cwd: at() });
  say("package-lock.json: done");
});

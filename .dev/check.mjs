// The fast loop: lint, types, layers, generated files and the unit tests of both languages; `--static` leaves the tests out and looks at every type.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { at, nodeProgram, workFolder } from "./places.mjs";
import { green, main, red, say, seconds } from "./say.mjs";
import { ensureModules, ensureNode, ensurePython, toolEnvironment } from "./setup.mjs";
import { runTasks } from "./tasks.mjs";

const bin = (...parts) => at("node_modules", ...parts);

/** The type checks: one for each tsconfig, incremental outside the tree. */
function typeChecks() {
  const projects = ["extension", "extension/webview", "extension/test", "tests/editor"].map(
    (f) => `${f}/tsconfig.json`,
  );
  return projects
    .filter((project) => existsSync(at(project)))
    .map((project) => {
      const info = path.join(workFolder("tsc"), `${project.replaceAll("/", "-")}.tsbuildinfo`);
      const options = ["--noEmit", "--incremental", "--tsBuildInfoFile", info, "--pretty", "false"];
      return {
        name: `tsc ${path.dirname(project)}`,
        command: nodeProgram,
        args: [bin("typescript", "bin", "tsc"), "-p", at(project), ...options],
      };
    });
}

/** What the fast loop checks the types of: the product, and of its tests those that were changed. */
function changedPython() {
  const said = spawnSync("git", ["status", "--porcelain", "--no-renames", "-uall", "--", "tests"], {
    cwd: at(),
    encoding: "utf8",
  });
  if (said.status !== 0) return ["server", ".dev", "tests"];
  const files = said.stdout.split("\n").map((line) => line.slice(3));
  return ["server", ".dev", ...files.filter((file) => file.endsWith(".py") && existsSync(at(file)))];
}

/** Every check, the slowest first. */
function checks(python, withTests) {
  const program = (name) => path.join(path.dirname(python), name);
  const types = [program("basedpyright"), "--warnings", "--pythonpath", python];
  const known = path.join(workFolder("typecheck"), "known.json");
  const pytest = [
    "-m",
    "pytest",
    "-n",
    "2",
    "--dist=worksteal",
    "-q",
    "-m",
    "not slow and not editor and not bench",
    "--hypothesis-profile=quick",
    "-o",
    `cache_dir=${workFolder("pytest")}`,
  ];
  const vitest = [bin("vitest", "vitest.mjs"), "run", "--config", at(".dev", "vitest.config.mjs"), "--reporter=dot"];
  const tests = [
    { name: "pytest", command: python, args: pytest },
    { name: "vitest", command: nodeProgram, args: vitest },
  ];
  const [first, ...rest] = withTests ? tests : [];
  return [
    withTests
      ? {
          name: "basedpyright",
          command: python,
          args: [at(".dev", "typecheck.py"), known, ...types, "--", ...changedPython()],
        }
      : { name: "basedpyright", command: types[0], args: types.slice(1) },
    ...(first ? [first] : []),
    { name: "ruff check", command: program("ruff"), args: ["check", "--quiet"] },
    { name: "ruff format", command: program("ruff"), args: ["format", "--check", "--quiet"] },
    { name: "import-linter", command: program("lint-imports"), args: ["--cache-dir", workFolder("import-linter")] },
    { name: "generated files", command: python, args: [at(".dev", "gen.py"), "--check"] },
    {
      name: "biome",
      command: nodeProgram,
      args: [
        bin("@biomejs", "biome", "bin", "biome"),
        "ci",
        "--colors=off",
        "--error-on-warnings",
        "--max-diagnostics=40",
      ],
    },
    ...typeChecks(),
    ...rest,
  ];
}

await main(async () => {
  const since = Date.now();
  await ensureNode();
  const python = await ensurePython();
  await ensureModules();
  const env = toolEnvironment({
    NO_COLOR: "1",
    PYTHONPATH: at("server"),
    RUFF_CACHE_DIR: workFolder("ruff"),
    DAIKU_DEV_PYTHON: python,
  });
  const tasks = checks(python, !process.argv.includes("--static"));
  const results = await runTasks(tasks.map((task) => ({ cwd: at(), env, ...task })));
  const failed = results.filter((result) => result.code !== 0);
  const verdict = failed.length === 0 ? green("all good") : red(`failed: ${failed.map((f) => f.name).join(", ")}`);
  say(`${verdict} (${seconds(since)})`);
  return failed.length === 0 ? 0 : 1;
});

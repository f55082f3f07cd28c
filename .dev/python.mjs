// Runs the project's Python with the checkout on its path: `node .dev/python.mjs -m tests.bench`.

import { at } from "./places.mjs";
import { run } from "./run.mjs";
import { main } from "./say.mjs";
import { ensureModules, ensureNode, ensurePython, toolEnvironment } from "./setup.mjs";

await main(async () => {
  await ensureNode();
  await ensureModules();
  const python = await ensurePython();
  const env = toolEnvironment({ PYTHONPATH: [at("server"), at()].join(":"), DAIKU_DEV_PYTHON: python });
  const done = await run(python, process.argv.slice(2), { cwd: at(), env, terminal: true });
  return done.code;
});

// Formats both languages and mends what the linters can mend by themselves.

import path from "node:path";
import { at, nodeProgram, workFolder } from "./places.mjs";
import { main } from "./say.mjs";
import { ensureModules, ensureNode, ensurePython, toolEnvironment } from "./setup.mjs";
import { runTasks } from "./tasks.mjs";

await main(async () => {
  await ensureNode();
  await ensureModules();
  const ruff = path.join(path.dirname(await ensurePython()), "ruff");
  const env = toolEnvironment({ RUFF_CACHE_DIR: workFolder("ruff") });
  const biome = at("node_modules", "@biomejs", "biome", "bin", "biome");
  const only = process.argv.slice(2);
  const tasks = [
    { name: "ruff check --fix", command: ruff, args: ["check", "--fix", "--quiet", ...only] },
    { name: "ruff format", command: ruff, args: ["format", "--quiet", ...only] },
    { name: "biome", command: nodeProgram, args: [biome, "check", "--write", ...only] },
  ];
  const results = await runTasks(
    tasks.map((task) => ({ cwd: at(), env, ...task })),
    { atOnce: 1 },
  );
  return results.some((result) => result.code !== 0) ? 1 : 0;
});

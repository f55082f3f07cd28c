// Builds the documentation site from docs/ into dist/docs: Sphinx, without network, a broken link is an error.

import { rmSync } from "node:fs";
import path from "node:path";
import { at, workFolder } from "./places.mjs";
import { run } from "./run.mjs";
import { green, main, say } from "./say.mjs";
import { ensurePython, toolEnvironment } from "./setup.mjs";

await main(async () => {
  const python = await ensurePython("requirements-docs");
  const out = at("dist", "docs");
  rmSync(out, { recursive: true, force: true });
  const env = toolEnvironment({ PYTHONPATH: [at("server"), at(".dev")].join(path.delimiter), LC_ALL: "C.UTF-8" });
  // -E reads every page again: generated parts change without their page.
  const options = ["-b", "html", "-q", "-E", "--fail-on-warning", "-d", workFolder("doctrees")];
  const done = await run(python, ["-m", "sphinx", ...options, at("docs"), out], { cwd: at(), env });
  if (done.code === 0) say(green(`${path.relative(process.cwd(), path.join(out, "index.html"))}`));
  return done.code;
});

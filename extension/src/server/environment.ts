// Makes the server's own Python environment, once, in the extension's storage, from the wheel and lock in the package.

import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { t } from "../l10n";
import { UserFacingError } from "./rpc";

/** Why there is no environment for the server, and what the person can do about it. */
export class SetupError extends UserFacingError {}

interface Setup {
  /** The folder of the package with the wheel and requirements.txt. */
  bundle: string;
  /** The extension's global storage. */
  storage: string;
  /** Folders of strangers, from which no program is ever started. */
  workspace: readonly string[];
  /** What is being done, and how much of all (of hundred) is done before it. */
  report: (message: string, done: number) => void;
  log: (line: string) => void;
  signal: AbortSignal;
}

const WINDOWS = process.platform === "win32";
const OLDEST: readonly [number, number] = [3, 11];
const PYTHONS = ["python3.13", "python3.12", "python3.14", "python3.11", "python3", "python"];
const READY = ".daiku-ready";
/** A set-up that another window began longer ago than this has died. */
const STALE_MS = 15 * 60_000;

const pythonIn = (folder: string): string =>
  WINDOWS ? path.join(folder, "Scripts", "python.exe") : path.join(folder, "bin", "python");

/** The Python of a complete environment for this package; made when there is none. Raises SetupError. */
export async function ensureEnvironment(setup: Setup): Promise<string> {
  const wheel = wheelIn(setup.bundle);
  const requirements = path.join(setup.bundle, "requirements.txt");
  const folder = path.join(setup.storage, `server-${digest(wheel, requirements)}`);
  const python = pythonIn(folder);
  const complete = () => existsSync(path.join(folder, READY)) && existsSync(python);
  if (complete()) return python;
  await mkdir(setup.storage, { recursive: true });
  const unlock = await lock(path.join(setup.storage, "setup.lock"), complete, setup);
  try {
    if (complete()) return python;
    await rm(folder, { recursive: true, force: true });
    await make(folder, wheel, requirements, setup);
    await writeFile(path.join(folder, READY), new Date().toISOString());
  } finally {
    await unlock();
  }
  await removeOthers(setup.storage, folder);
  return python;
}

function wheelIn(bundle: string): string {
  const name = existsSync(bundle) ? readdirSync(bundle).find((file) => /^daiku-.*\.whl$/.test(file)) : undefined;
  if (name) return path.join(bundle, name);
  throw new SetupError(
    t("This build of the extension does not include the server."),
    t("Install the packaged extension, or set daiku.server.command to the command that starts Daiku."),
  );
}

function digest(...files: string[]): string {
  const hash = createHash("sha256").update(`${process.platform}-${process.arch}`);
  for (const file of files) hash.update(existsSync(file) ? readFileSync(file) : "");
  return hash.digest("hex").slice(0, 12);
}

/** With uv where there is one; where that fails, with a Python of this machine. */
async function make(folder: string, wheel: string, requirements: string, setup: Setup): Promise<void> {
  const uv = findProgram("uv", setup.workspace);
  if (!uv) return makeWith(await findPython(setup), folder, wheel, requirements, setup);
  try {
    await makeWithUv(uv, folder, wheel, requirements, setup);
  } catch (error) {
    setup.signal.throwIfAborted();
    const base = await findPython(setup).catch(() => undefined);
    if (!base) throw error;
    setup.log("uv did not make the environment; trying with Python itself");
    await rm(folder, { recursive: true, force: true });
    await makeWith(base, folder, wheel, requirements, setup);
  }
}

/** The two parts of the work, as the person is told of them: of hundred, the first is so much. */
const MAKING = 10;
const reportMaking = (setup: Setup) => setup.report(t("Creating a Python environment…"), 0);
const reportInstalling = (setup: Setup) => setup.report(t("Installing the server…"), MAKING);

async function makeWithUv(uv: string, folder: string, wheel: string, requirements: string, setup: Setup) {
  reportMaking(setup);
  await run(uv, ["venv", "--no-config", "--quiet", "--python", `>=${OLDEST.join(".")}`, folder], setup);
  reportInstalling(setup);
  const install = ["pip", "install", "--no-config", "--quiet", "--compile-bytecode", "--python", pythonIn(folder)];
  await run(uv, [...install, "--require-hashes", "-r", requirements], setup);
  await run(uv, [...install, "--no-deps", wheel], setup);
}

async function makeWith(base: string, folder: string, wheel: string, requirements: string, setup: Setup) {
  reportMaking(setup);
  await run(base, ["-I", "-m", "venv", folder], setup).catch((error: Error) => {
    setup.log(error.message);
    throw new SetupError(
      t("Could not create a Python environment."),
      t("Install uv or your system's venv package (Debian/Ubuntu: apt install python3-venv), and try again."),
    );
  });
  reportInstalling(setup);
  const pip = ["-I", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--compile"];
  await run(pythonIn(folder), [...pip, "--require-hashes", "-r", requirements], setup);
  await run(pythonIn(folder), [...pip, "--no-deps", wheel], setup);
}

async function findPython(setup: Setup): Promise<string> {
  const seen: string[] = [];
  for (const name of PYTHONS) {
    const program = findProgram(name, setup.workspace);
    if (!program) continue;
    const version = await run(program, ["-I", "-c", "import sys; print(*sys.version_info[:2])"], setup).catch(() => "");
    const [major = 0, minor = 0] = version.trim().split(" ").map(Number);
    if (major === OLDEST[0] && minor >= OLDEST[1]) return program;
    if (major) seen.push(`${name} ${major}.${minor}`);
  }
  const found = seen.length ? t("Found: {0}.", seen.join(", ")) : "";
  throw new SetupError(
    [t("Daiku requires Python {0} or later, or uv. Neither was found.", OLDEST.join(".")), found]
      .filter(Boolean)
      .join(" "),
    t("Install Python, or uv (which downloads Python automatically), and try again."),
  );
}

/** A program on PATH, by its real place, never one that lies in a workspace. */
function findProgram(name: string, workspace: readonly string[]): string | undefined {
  const within = (file: string) => workspace.some((folder) => !path.relative(realPath(folder), file).startsWith(".."));
  for (const folder of (process.env.PATH ?? "").split(path.delimiter)) {
    if (!path.isAbsolute(folder)) continue;
    for (const suffix of WINDOWS ? [".exe"] : [""]) {
      const file = path.join(folder, name + suffix);
      if (!isExecutable(file) || within(file) || within(realPath(file))) continue;
      return file;
    }
  }
  return undefined;
}

function realPath(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function run(program: string, args: readonly string[], setup: Setup): Promise<string> {
  setup.log(`$ ${[program, ...args].join(" ")}`);
  return new Promise((resolve, reject) => {
    const options = { cwd: setup.storage, signal: setup.signal, windowsHide: true };
    const child: ChildProcess = spawn(program, args, options);
    lowerPriority(child.pid);
    let out = "";
    let err = "";
    child.stdout?.on("data", (data) => (out += String(data)));
    child.stderr?.on("data", (data) => (err += String(data)));
    child.once("error", reject);
    child.once("close", (code) => {
      if (err.trim()) setup.log(err.trim());
      if (code === 0) return resolve(out);
      setup.log(`exit code ${code}: ${lastLine(err || out)}`);
      reject(
        new SetupError(
          t("Could not set up the server."),
          t("Check the log, your network connection, and free disk space, and try again."),
        ),
      );
    });
  });
}

/** The editor goes first: a window that has just been opened is being drawn while this works. */
function lowerPriority(pid: number | undefined): void {
  try {
    if (pid) os.setPriority(pid, os.constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // It has ended already.
  }
}

const lastLine = (text: string): string => text.trim().split("\n").at(-1)?.trim() ?? "";

/** Waits until no other window sets up; answers with what gives the lock back. */
async function lock(place: string, done: () => boolean, setup: Setup): Promise<() => Promise<void>> {
  for (;;) {
    try {
      await mkdir(place);
      return () => rm(place, { recursive: true, force: true });
    } catch {
      if (done()) return async () => {};
      const age = await stat(place).then(
        (at) => Date.now() - at.mtimeMs,
        () => 0,
      );
      if (age > STALE_MS) await rm(place, { recursive: true, force: true });
      setup.signal.throwIfAborted();
      setup.report(t("Another window is setting up Daiku…"), 0);
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

/** Environments of former versions: no window of this version uses them. */
async function removeOthers(storage: string, kept: string): Promise<void> {
  for (const name of await readdir(storage)) {
    const folder = path.join(storage, name);
    if (/^server-[0-9a-f]{12}$/.test(name) && folder !== kept)
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
  }
}

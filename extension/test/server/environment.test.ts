// The server's environment is made with what there is: uv, else Python; what fails is told in our words.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ensureEnvironment, SetupError } from "../../src/server/environment";

const PATH = process.env.PATH;
let folder: string;

/** Programs that write down how they were called; `uv` and `python3` are all that the machine has. */
const PROGRAM = `#!/bin/sh
echo "$0 $@" >> "$CALLS"
case "$*" in
  *version_info*) echo "3 12" ;;
  *venv*) [ -n "$FAILS" ] && case "$0" in */$FAILS) echo "error: Connection refused (os error 111)" >&2; exit 2 ;; esac
    for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
esac
`;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "daiku-environment-"));
  for (const name of ["bin", "bundle"]) mkdirSync(path.join(folder, name));
  writeFileSync(path.join(folder, "bundle", "daiku-1-py3-none-any.whl"), "wheel");
  writeFileSync(path.join(folder, "bundle", "requirements.txt"), "");
  for (const name of ["mkdir", "cp"]) program(name, `#!/bin/sh\nPATH=${PATH} exec ${name} "$@"\n`);
  process.env.PATH = path.join(folder, "bin");
  process.env.CALLS = path.join(folder, "calls");
  process.env.FAILS = "";
});
afterEach(() => {
  process.env.PATH = PATH;
  rmSync(folder, { recursive: true, force: true });
});

function program(name: string, text = PROGRAM): void {
  const file = path.join(folder, "bin", name);
  writeFileSync(file, text);
  chmodSync(file, 0o755);
}

async function made(workspace: readonly string[] = []) {
  const reports: [string, number][] = [];
  const python = await ensureEnvironment({
    ...{ bundle: path.join(folder, "bundle"), storage: path.join(folder, "storage"), workspace },
    report: (message, done) => reports.push([message, done]),
    log: () => undefined,
    signal: new AbortController().signal,
  });
  const calls = readFileSync(path.join(folder, "calls"), "utf8").trim().split("\n");
  return { python, reports, calls: calls.map((call) => call.replaceAll(`${folder}/`, "")) };
}

// Skipped on Windows: shell scripts stand in for uv and Python, and Windows cannot run them.
describe.skipIf(process.platform === "win32")("the server's environment", () => {
  it("is made with uv, with bytecode, and says how far it is", async () => {
    program("uv");
    const { python, reports, calls } = await made();
    expect(existsSync(python)).toBe(true);
    expect(
      calls.filter((call) => call.includes("pip install")).every((call) => call.includes("--compile-bytecode")),
    ).toBe(true);
    expect(reports.map(([, done]) => done)).toEqual([0, 10]);
  });

  it("is made behind the editor's own work, on machines that know of such a thing", async () => {
    const set = vi.spyOn(os, "setPriority");
    program("uv");
    const { calls } = await made();
    expect(set).toHaveBeenCalledTimes(calls.length);
    for (const [pid, priority] of set.mock.calls) expect([pid > 0, priority]).toEqual([true, 10]);
  });

  it("is made with Python where there is no uv", async () => {
    program("python3");
    const { calls } = await made();
    expect(calls.some((call) => call.startsWith("bin/python3 -I -m venv"))).toBe(true);
    expect(calls.at(-1)).toContain("--compile");
  });

  it("is made with Python where uv is there and fails", async () => {
    program("uv");
    program("python3");
    process.env.FAILS = "uv";
    const { python, calls } = await made();
    expect(existsSync(python)).toBe(true);
    expect(calls.some((call) => call.startsWith("bin/uv venv"))).toBe(true);
    expect(calls.at(-1)).toMatch(/^storage\/server-\w+\/bin\/python -I -m pip install/);
  });

  it.each([["uv"], ["python3"]])("that %s cannot make is told without the words of a program", async (name) => {
    program(name);
    process.env.FAILS = name;
    const failed = await made().then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(failed).toBeInstanceOf(SetupError);
    const { message, hint } = failed as SetupError;
    expect(message).not.toMatch(/os error|Connection refused/);
    expect(hint).not.toBe("");
  });

  it("is never made with a program that lies in a workspace, nor with a link to one", async () => {
    program("uv");
    await expect(made([path.join(folder, "bin")])).rejects.toThrow("Neither");
    mkdirSync(path.join(folder, "project"));
    renameSync(path.join(folder, "bin", "uv"), path.join(folder, "project", "uv"));
    symlinkSync(path.join(folder, "project", "uv"), path.join(folder, "bin", "uv"));
    await expect(made([path.join(folder, "project")])).rejects.toThrow("Neither");
    expect(existsSync(path.join(folder, "calls"))).toBe(false);
  });

  it("that nothing can make says what is needed", async () => {
    program("true", "#!/bin/sh\n");
    await expect(made()).rejects.toThrow("Neither");
  });
});

// Starting other programs: one way to do it, with what they print kept or passed on.

import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import path from "node:path";
import { Trouble } from "./say.mjs";

const running = new Set();

/** Ends everything that `run` started and that is still there (each program leads its own process group). */
export function endAll(signal = "SIGTERM") {
  for (const child of running) end(child, signal);
}

function end(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has ended by itself in the meantime.
  }
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.once(signal, () => {
    endAll();
    process.exit(signal === "SIGINT" ? 130 : 143);
  });
}
process.once("exit", () => endAll("SIGKILL"));

/**
 * Runs a program to its end. `capture` keeps what it prints instead of passing it on; `tee` does both.
 * With `timeout` (ms) it is killed and counts as failed. Never rejects: a program that cannot start has code 127.
 */
export function run(command, args, { cwd, env, capture = false, tee = false, timeout = 0, terminal = false } = {}) {
  return new Promise((resolve) => {
    // A program that talks with the person shares our process group, or the terminal would not let it read.
    const stdio = terminal
      ? "inherit"
      : ["ignore", capture || tee ? "pipe" : "inherit", capture || tee ? "pipe" : "inherit"];
    const child = spawn(command, args, { cwd, env: env ?? process.env, stdio, detached: !terminal });
    if (!terminal) running.add(child);
    const parts = [];
    const keep = (out) => (data) => {
      parts.push(data);
      if (tee) out.write(data);
    };
    child.stdout?.on("data", keep(process.stdout));
    child.stderr?.on("data", keep(process.stderr));
    let late = false;
    const timer =
      timeout &&
      setTimeout(() => {
        late = true;
        end(child, "SIGTERM");
        setTimeout(() => end(child, "SIGKILL"), 3000).unref();
      }, timeout);
    const finish = (code, note = "") => {
      clearTimeout(timer);
      running.delete(child);
      const text = Buffer.concat(parts).toString("utf8") + note;
      resolve({ code, text: late ? `${text}\nstopped after ${timeout / 1000} s` : text, late });
    };
    child.on("error", (error) => finish(127, String(error)));
    child.on("close", (code, signal) => finish(code ?? (signal ? 128 : 1)));
  });
}

/** Runs a program that has to succeed; a failure shows what it printed. */
export async function must(what, command, args, options = {}) {
  const done = await run(command, args, { capture: true, ...options });
  if (done.code !== 0)
    throw new Trouble(`${what} failed (${path.basename(command)}, exit code ${done.code}):\n${done.text.trim()}`);
  return done.text;
}

/** The path of a program on PATH, or "". */
export function which(name) {
  const endings = process.platform === "win32" ? [".exe", ".cmd", ""] : [""];
  for (const folder of (process.env.PATH ?? "").split(path.delimiter)) {
    for (const ending of endings) {
      const file = path.join(folder, name + ending);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // Not here; the next folder.
      }
    }
  }
  return "";
}

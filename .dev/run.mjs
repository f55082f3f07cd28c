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

const cleanups = new Set();
let talking = 0;
let stopping = false;

/** Something to do before a signal ends this process; answers with what takes it off the list. */
export function beforeEnd(cleanup) {
  cleanups.add(cleanup);
  return () => cleanups.delete(cleanup);
}

const CLEANUP_LIMIT = 8000;

async function stopAll(signal) {
  // Ctrl-C went to the program that talks with the person too: it decides what that means, and we wait for it.
  if (signal === "SIGINT" && talking > 0) return;
  if (stopping) process.exit(130); // Asked twice: at once.
  stopping = true;
  endAll();
  const late = new Promise((resolve) => setTimeout(resolve, CLEANUP_LIMIT));
  await Promise.race([Promise.allSettled([...cleanups].map((cleanup) => cleanup())), late]);
  process.exit(signal === "SIGINT" ? 130 : 143);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => stopAll(signal));
process.once("exit", () => endAll("SIGKILL"));

// npm that is told to end does not tell us: we notice that it has gone.
const parent = process.ppid;
if (process.env.npm_lifecycle_event) {
  setInterval(() => {
    if (process.ppid !== parent && !stopping) stopAll("SIGTERM");
  }, 1000).unref();
}

/** Milliseconds that a program has to report after it was interrupted for being late. */
const REPORT_LIMIT = 30_000;

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
    if (terminal) talking += 1;
    else running.add(child);
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
        end(child, "SIGINT"); // A test runner that is interrupted still reports what failed.
        setTimeout(() => end(child, "SIGTERM"), REPORT_LIMIT).unref();
        setTimeout(() => end(child, "SIGKILL"), REPORT_LIMIT + 3000).unref();
      }, timeout);
    const finish = (code, note = "") => {
      clearTimeout(timer);
      if (!running.delete(child)) talking -= 1;
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

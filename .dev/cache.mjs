// Installing something once: ready or not at all, and safe when two commands want it at the same time.

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { say, seconds, Trouble } from "./say.mjs";

const READY = ".daiku-ready";
const PATIENCE = 15 * 60_000;

const isAlive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
};

const isReady = (folder, key) => {
  const mark = path.join(folder, READY);
  return existsSync(mark) && readFileSync(mark, "utf8") === key;
};

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function take(lock) {
  const end = Date.now() + PATIENCE;
  for (let told = false; ; ) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx" });
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    let holder = 0;
    try {
      holder = Number(readFileSync(lock, "utf8"));
    } catch {
      continue; // Just released.
    }
    if (holder && !isAlive(holder)) {
      rmSync(lock, { force: true });
      continue;
    }
    if (Date.now() > end)
      throw new Trouble(`process ${holder} has been installing for 15 minutes; end it or delete ${lock}`);
    if (!told) say(`waiting for another command that installs this (process ${holder}) …`);
    told = true;
    await pause(500);
  }
}

/**
 * Makes sure that `folder` holds what `install()` puts there for `key`. An install that was cut short is begun anew:
 * the mark is written last. `keep` leaves the old content for the installer to bring up to date.
 */
export async function installed(what, folder, key, install, { keep = false, lock = `${folder}.lock` } = {}) {
  if (isReady(folder, key)) return folder;
  mkdirSync(path.dirname(folder), { recursive: true });
  await take(lock);
  try {
    if (isReady(folder, key)) return folder;
    const since = Date.now();
    say(`setting up ${what} …`);
    if (!keep) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    mkdirSync(folder, { recursive: true });
    await install(folder);
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, READY), key);
    say(`  ${what}: ${seconds(since)}`);
  } finally {
    rmSync(lock, { force: true });
  }
  return folder;
}

// A real VS Code of our own on loopback: its own settings, extensions and home; started, asked for its port, stopped.

import { spawn } from "node:child_process";
import { createWriteStream, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { editorEntry, nodeProgram } from "./places.mjs";
import { must } from "./run.mjs";
import { Trouble } from "./say.mjs";

const QUIET = {
  "extensions.autoCheckUpdates": false,
  "extensions.autoUpdate": false,
  "extensions.ignoreRecommendations": true,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "window.menuBarVisibility": "classic",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};
const START_LIMIT = 60_000;
const LISTENING = /listening on http:\/\/127\.0\.0\.1:(\d+)/i;

/** An environment in which the editor finds nothing of the person's own editor, and calls no gallery. */
function environment(folder, extra) {
  const home = path.join(folder, "home");
  const temporary = path.join(folder, "tmp");
  for (const place of [home, temporary]) mkdirSync(place, { recursive: true });
  const env = { ...process.env, HOME: home, TMPDIR: temporary, EXTENSIONS_GALLERY: "{}", ...extra };
  for (const name of ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"])
    delete env[name];
  for (const name of ["VSCODE_IPC_HOOK_CLI", "NODE_OPTIONS", "NODE_TEST_CONTEXT"]) delete env[name];
  return env;
}

function writeSettings(userData, settings) {
  const text = JSON.stringify({ ...QUIET, ...settings }, null, 2);
  for (const level of ["User", "Machine"]) {
    mkdirSync(path.join(userData, level), { recursive: true });
    writeFileSync(path.join(userData, level, "settings.json"), text);
  }
}

/** Waits until the server says where it listens; rejects with its words when it ends or says nothing for a minute. */
function portOf(child, log) {
  return new Promise((resolve, reject) => {
    let said = "";
    const fail = (why) => reject(new Trouble(`VS Code did not start (${why}):\n${said.trim()}`));
    const timer = setTimeout(() => fail("a minute without an answer"), START_LIMIT);
    const listen = (data) => {
      log.write(data);
      if (said === undefined) return;
      said += data;
      const found = LISTENING.exec(said);
      if (!found) return;
      clearTimeout(timer);
      said = undefined;
      resolve(Number(found[1]));
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.once("exit", (code) => {
      clearTimeout(timer);
      if (said !== undefined) fail(`exit code ${code}`);
    });
  });
}

const stopped = (child, ms) =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", resolve);
    setTimeout(resolve, ms).unref();
  });

function signal(child, name) {
  try {
    process.kill(-child.pid, name);
  } catch {
    // The whole group has ended.
  }
}

/**
 * Starts the editor. `vsix`: an extension to install; `settings`: of this editor; `env`: for it and its extensions;
 * `trust`: whether folders have to be trusted; `testing`: run extensions from source (`payload` in the address);
 * `folder`: where its state lives (kept) instead of a temporary folder (removed by `stop`).
 * Answers with `{url, port, folder, log, stop}`.
 */
export async function startCodeServer({
  vsix,
  settings = {},
  env: extra = {},
  trust = false,
  testing = false,
  port = 0,
  folder,
} = {}) {
  const place = folder ?? mkdtempSync(path.join(os.tmpdir(), "daiku-editor-"));
  const [userData, extensions, config] = ["user-data", "extensions", "config.yaml"].map((name) =>
    path.join(place, name),
  );
  for (const made of [userData, extensions]) mkdirSync(made, { recursive: true });
  writeFileSync(config, "");
  writeSettings(userData, settings);
  const env = environment(place, extra);
  const base = [editorEntry, "--config", config, "--user-data-dir", userData, "--extensions-dir", extensions];
  if (vsix)
    await must("installing the extension", nodeProgram, [...base, "--install-extension", vsix, "--force"], { env });
  const options = [
    "--bind-addr",
    `127.0.0.1:${port}`,
    "--auth",
    "none",
    "--disable-telemetry",
    "--disable-update-check",
    "--disable-getting-started-override",
    "--disable-proxy",
  ];
  if (!trust) options.push("--disable-workspace-trust");
  if (testing) options.push("--vscode-option", "enable-smoke-test-driver");
  const logFile = path.join(place, "server.log");
  const log = createWriteStream(logFile);
  const child = spawn(nodeProgram, [...base, ...options], { env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const atExit = () => signal(child, "SIGKILL");
  process.once("exit", atExit);
  const stop = async () => {
    signal(child, "SIGTERM");
    await stopped(child, 5000);
    signal(child, "SIGKILL");
    process.off("exit", atExit);
    log.end();
    if (!folder) rmSync(place, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    const chosen = await portOf(child, log);
    return { url: `http://127.0.0.1:${chosen}`, port: chosen, folder: place, log: logFile, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

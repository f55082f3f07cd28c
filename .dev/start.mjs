// Opens Daiku on a sample project: in VS Code, or in a browser; `npm start -- run "…"` does it in the terminal.

import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import { build } from "./build.mjs";
import { startCodeServer } from "./codeserver.mjs";
import { packClient } from "./package.mjs";
import { at, workFolder } from "./places.mjs";
import { beforeEnd, run, which } from "./run.mjs";
import { bold, dim, main, say } from "./say.mjs";
import { daikuCommand, ensureEditor, ensureModules, ensureNode, ensurePython } from "./setup.mjs";
import { ensurePrograms, FOR_USE } from "./system.mjs";

const USUAL_PORT = 8377;
const answers = (url) =>
  fetch(url, { signal: AbortSignal.timeout(1000) })
    .then((response) => response.ok)
    .catch(() => false);

/** Where `daiku` looks for a person's own settings. */
function userConfig() {
  const home = process.env.DAIKU_HOME;
  const config =
    process.platform === "darwin"
      ? path.join(os.homedir(), "Library", "Application Support")
      : process.env.XDG_CONFIG_HOME || path.join(os.homedir(), ".config");
  return [...(home ? [path.join(home, "config.toml")] : []), path.join(config, "daiku", "config.toml")];
}

/** The settings of a demonstration, where no key, no local model and no settings of the person's own are found. */
async function demonstration(command) {
  const chosen = Object.keys(process.env).some((name) => name.startsWith("DAIKU_LLM__"));
  if (chosen || userConfig().some((file) => existsSync(file))) return {};
  const { code, text } = await run(command, ["models", "--json"], { capture: true, timeout: 30_000 });
  const found = text.split("\n").find((line) => line.startsWith("{"));
  if (code !== 0 || !found || JSON.parse(found).chosen) return {};
  say(
    `No key and no local model was found, so ${bold("a script plays the model")}. ` +
      `To connect a real one, see ${bold("npm start -- models")}, and run this again.`,
  );
  return { DAIKU_LLM__PROVIDER: "scripted" };
}

/** A copy of the sample project under version control, made anew each time. */
async function makeSample() {
  const folder = path.join(mkdtempSync(path.join(os.tmpdir(), "daiku-sample-")), "shop");
  cpSync(at("tests", "fixtures", "sample"), folder, {
    recursive: true,
    filter: (from) => !from.includes("__pycache__"),
  });
  writeFileSync(path.join(folder, ".gitignore"), "__pycache__/\n");
  const who = ["-c", "user.name=Daiku", "-c", "user.email=daiku@localhost"];
  for (const words of [
    ["init", "-q"],
    ["add", "-A"],
    [...who, "commit", "-q", "-m", "A small shop"],
  ]) {
    await run("git", words, { cwd: folder, capture: true });
  }
  return folder;
}

const hasDisplay = () =>
  process.platform !== "linux" ||
  Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY || process.env.WSL_DISTRO_NAME);

/** Ends the VS Code of this profile: its window outlives the `code` command, its lock file says which process it is. */
function closeCode(profile) {
  const lock = path.join(profile, "code.lock");
  const pid = existsSync(lock) ? Number(readFileSync(lock, "utf8")) : 0;
  try {
    if (pid > 0) process.kill(pid);
  } catch {
    // The window was closed in the meantime.
  }
}

/** The person's own VS Code, with a profile of its own, until its window is closed. */
async function openInCode(sample, env) {
  say(`Daiku opens in VS Code on ${sample}`);
  const profile = workFolder("vscode");
  beforeEnd(() => closeCode(profile));
  const options = ["--user-data-dir", profile, "--new-window", "--wait", "--disable-workspace-trust", "--skip-welcome"];
  const asRoot = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const words = [`--extensionDevelopmentPath=${at("extension")}`, ...options, ...asRoot, sample];
  const done = await run("code", words, { env: { ...process.env, ...env } });
  return done.code;
}

/** The usual port when it is free, so that the browser keeps what it knows of the page; else 0: any. */
const freePort = () =>
  new Promise((resolve) => {
    const port = Number(process.env.DAIKU_PORT || USUAL_PORT);
    const probe = createServer();
    probe.once("error", () => resolve(0));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(port)));
  });

/** The folder where this checkout's demonstration editor remembers things; undefined while another one uses it. */
function editorState() {
  const folder = workFolder("editor");
  const mark = path.join(folder, "pid");
  const holder = existsSync(mark) ? Number(readFileSync(mark, "utf8")) : 0;
  try {
    if (holder) process.kill(holder, 0);
    if (holder) return undefined;
  } catch {
    // It ended without taking its mark away.
  }
  writeFileSync(mark, String(process.pid));
  return folder;
}

/** VS Code in the browser, on loopback, until Ctrl-C. */
async function openInBrowser(sample, env) {
  await ensureEditor();
  const vsix = await packClient();
  const state = editorState();
  const settings = { "chat.commandCenter.enabled": false, "workbench.colorTheme": "Default Dark Modern" };
  const server = await startCodeServer({ vsix, env, settings, port: await freePort(), folder: state });
  let end;
  const ended = new Promise((resolve) => {
    end = resolve;
  });
  beforeEnd(async () => {
    say("\nstopping …");
    await server.stop();
    if (state) rmSync(path.join(state, "pid"), { force: true });
    end();
  });
  const address = `${server.url}/?folder=${encodeURIComponent(sample)}`;
  if (!(await answers(address))) say(`VS Code does not answer yet; its log: ${server.log}`);
  process.stdout.write(`Daiku is open at ${address}\n`);
  say(dim("Ctrl-C stops it."));
  const opener = process.platform === "darwin" ? "open" : "xdg-open";
  if (hasDisplay() && which(opener)) run(opener, [address], { capture: true });
  await ended;
}

await main(async () => {
  const words = process.argv.slice(2);
  await ensurePrograms(FOR_USE);
  await ensureNode();
  const python = await ensurePython("requirements");
  const command = daikuCommand(python);
  const env = { ...(await demonstration(command)), DAIKU_DEV_SERVER: command, DAIKU_DEV_OPEN: "1" };
  const sample = await makeSample();
  const forget = () => rmSync(path.dirname(sample), { recursive: true, force: true });
  if (words.length > 0) {
    say(dim(`in ${sample}`));
    const done = await run(command, words, { cwd: sample, env: { ...process.env, ...env }, terminal: true });
    return done.code;
  }
  beforeEnd(forget);
  await ensureModules();
  await build({ production: true });
  const code = hasDisplay() && which("code") ? await openInCode(sample, env) : await openInBrowser(sample, env);
  forget();
  return code;
});

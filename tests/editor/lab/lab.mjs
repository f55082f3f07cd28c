// One editor, one browser, one workspace for a test, all gone after it; a screenshot stays when it failed.

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { startCodeServer } from "../../../.dev/codeserver.mjs";
import { packClient } from "../../../.dev/package.mjs";
import { at } from "../../../.dev/places.mjs";
import { startBrowser } from "./browser.mjs";
import { Workbench } from "./workbench.mjs";

/** A fresh folder with the given files (`{name: text}`), or a copy of the sample project. */
export function makeWorkspace(files) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "daiku-workspace-"));
  if (!files)
    cpSync(at("tests", "fixtures", "sample"), folder, {
      recursive: true,
      filter: (from) => !from.includes("__pycache__"),
    });
  for (const [name, text] of Object.entries(files ?? {})) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

/**
 * Calls `use({workbench, page, workspace, home, url, server})` with Daiku installed in a running editor.
 * `files`: the workspace; `env` and `settings`: of the editor; `name`: of the screenshot when it fails;
 * `vsix`: the package to install instead of the client alone.
 */
export async function inEditor({ name, files, env = {}, settings = {}, trust = false, locale, vsix }, use) {
  const workspace = makeWorkspace(files);
  const home = mkdtempSync(path.join(os.tmpdir(), "daiku-home-"));
  const server = await startCodeServer({
    vsix: vsix ?? (await packClient()),
    settings,
    trust,
    // A scripted model mends a file within the second in which it was made, and Python compares seconds.
    env: { DAIKU_HOME: home, PYTHONDONTWRITEBYTECODE: "1", ...env },
  });
  const browser = await startBrowser({ locale });
  const workbench = new Workbench(browser.page);
  try {
    await workbench.open(server.url, workspace);
    await use({ workbench, page: browser.page, workspace, home, server, url: server.url });
  } catch (error) {
    await workbench.shot(`failed-${name}`).catch(() => {});
    throw error;
  } finally {
    await browser.stop();
    await server.stop();
    for (const folder of [workspace, home]) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Waits until `condition()` answers something true, and answers with it. */
export async function until(what, condition, timeout = 15_000) {
  const end = Date.now() + timeout;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${timeout / 1000} s for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

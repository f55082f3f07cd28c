// What the tests in the extension host share: the extension's parts, files, scripts that play the model.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import * as vscode from "vscode";
import type { App } from "../../../extension/src/app";
import type { Chunk } from "../../../extension/src/contract.gen";

export async function daiku(): Promise<App> {
  const extension = vscode.extensions.getExtension<{ app: App }>("daiku.daiku");
  assert.ok(extension, "the extension is not known to the editor");
  return (await extension.activate()).app;
}

export function inWorkspace(name: string): string {
  const folder = vscode.workspace.workspaceFolders?.[0];
  assert.ok(folder);
  return path.join(folder.uri.fsPath, name);
}

export const textOf = (name: string): string => readFileSync(inWorkspace(name), "utf8");

export async function until<T>(what: string, condition: () => T | Promise<T>, timeout = 15_000): Promise<T> {
  const end = Date.now() + timeout;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${timeout / 1000} s for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Sets `daiku.*` for the person, and waits until the server that was told so runs. */
export async function configure(settings: Record<string, unknown>): Promise<void> {
  const app = await daiku();
  const former = app.server.running();
  const config = vscode.workspace.getConfiguration("daiku");
  const changed = Object.entries(settings).filter(([key, value]) => config.inspect(key)?.globalValue !== value);
  for (const [key, value] of changed) await config.update(key, value, vscode.ConfigurationTarget.Global);
  if (changed.length === 0) return;
  await until(
    "the server with the new settings",
    () => app.server.running() !== undefined && app.server.running() !== former,
  );
  await until("no further restart", async () => {
    const running = app.server.running();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return running !== undefined && running === app.server.running();
  });
}

/**
 * Lets a script play the model; each line is one reply. The file is always the same one: a server reads it again where
 * it has changed, and need not be restarted.
 */
export async function play(...lines: object[]): Promise<void> {
  const file = path.join(os.tmpdir(), "script.jsonl");
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  await configure({ "llm.provider": "scripted", "llm.model": `scripted/${file}` });
}

/** The chunks of the open conversation. */
export function chunks(app: App): readonly Chunk[] {
  const shown = app.chat.snapshot();
  return shown.type === "session" ? shown.chunks : [];
}

/** Waits for the question and answers it. */
export async function decide(app: App, decision: "allow_once" | "reject_once"): Promise<void> {
  const asked = await until("an approval to be asked", () => app.chat.waiting[0]);
  assert.ok(asked);
  await app.chat.approve({ runId: asked.runId, approvalId: asked.approvalId, decision });
}

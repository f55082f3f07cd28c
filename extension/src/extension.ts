// The extension's entry: activation and deactivation.

import type * as vscode from "vscode";
import { type App, createApp } from "./app";

let app: App | undefined;

/** Returns at once: the server starts by itself, later. `activation` says how long it took and what ran then. */
export function activate(context: vscode.ExtensionContext): { app: App; activation: { ms: number; phase: string } } {
  const start = performance.now();
  app = createApp(context);
  return { app, activation: { ms: performance.now() - start, phase: app.server.state.phase } };
}

/** Stops the server before the window closes. */
export async function deactivate(): Promise<void> {
  await app?.server.stop();
  app = undefined;
}

// The extension's entry: activation and deactivation.

import type * as vscode from "vscode";
import { type App, createApp } from "./app";

let app: App | undefined;

/** How long the activation took, how much processor time the extension host used meanwhile, and what ran then. */
interface Activation {
  ms: number;
  busyMs: number;
  phase: string;
}

/** Returns at once: the server starts by itself, later. */
export function activate(context: vscode.ExtensionContext): { app: App; activation: Activation } {
  const [start, before] = [performance.now(), process.cpuUsage()];
  app = createApp(context);
  const [ms, used] = [performance.now() - start, process.cpuUsage(before)];
  return { app, activation: { ms, busyMs: (used.user + used.system) / 1000, phase: app.server.state.phase } };
}

/** Stops the server before the window closes. */
export async function deactivate(): Promise<void> {
  await app?.server.stop();
  app = undefined;
}

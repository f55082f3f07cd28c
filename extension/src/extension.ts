// The extension's beginning and end.

import type * as vscode from "vscode";
import { type App, createApp } from "./app";

let app: App | undefined;

/** Returns at once: the server starts by itself, later. */
export function activate(context: vscode.ExtensionContext): { app: App } {
  app = createApp(context);
  return { app };
}

export async function deactivate(): Promise<void> {
  await app?.server.stop();
  app = undefined;
}

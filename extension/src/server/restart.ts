// Restarts the server when its start settings have changed, as soon as no run is in progress.

import * as vscode from "vscode";
import { isApiKey } from "./secrets";
import type { Server } from "./server";

interface Needs {
  server: Pick<Server, "client" | "state" | "restart">;
  log: Pick<vscode.LogOutputChannel, "info">;
  secrets: vscode.SecretStorage;
  runs: {
    /** A run is under way. */
    readonly busy: boolean;
    /** That may have changed. */
    readonly onWorking: vscode.Event<boolean>;
  };
}

/** Settings of the extension alone, of which the server knows nothing. */
const OWN = ["daiku.codeLens", "daiku.review"];

/** Watches settings, API keys and trust, and restarts the server once no run is under way. */
export function restartOnChange({ server, log, secrets, runs }: Needs): vscode.Disposable[] {
  let due: string | undefined;
  const restart = (why: string) => {
    if (server.state.phase === "off") return;
    due = why;
    if (runs.busy) log.info(`${why}; the server restarts when the run has ended`);
    else go();
  };
  const go = () => {
    const why = due;
    due = undefined;
    if (why) void server.restart(why).catch(() => undefined);
  };
  return [
    vscode.workspace.onDidChangeConfiguration((event) => {
      const own = OWN.some((name) => event.affectsConfiguration(name));
      if (event.affectsConfiguration("daiku") && !own) restart("settings changed");
    }),
    secrets.onDidChange(({ key }) => isApiKey(key) && restart("an API key changed")),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      if (server.state.phase === "off") void server.client().catch(() => undefined);
      else restart("the workspace is trusted now");
    }),
    runs.onWorking(() => {
      if (!runs.busy) go();
    }),
  ];
}

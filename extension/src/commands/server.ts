// Commands for Daiku itself: keys, log, restart, settings, doctor, grants, the menu of the status bar.

import * as vscode from "vscode";
import { VIEW } from "../chat/panel";
import { t } from "../l10n";
import { showDoctor } from "../server/doctor";
import { showGrants } from "../server/grants";
import { askForKey } from "../server/secrets";
import type { Server } from "../server/server";
import type { CommandTable } from "./table";

export interface ServerParts {
  server: Pick<Server, "client" | "state" | "restart">;
  log: Pick<vscode.LogOutputChannel, "show" | "error">;
  secrets: vscode.SecretStorage;
}

/** The commands for Daiku itself, by their ids. */
export function serverCommands({ server, log, secrets }: ServerParts): CommandTable {
  return {
    "daiku.setApiKey": async () => {
      if (await askForKey(secrets)) vscode.window.setStatusBarMessage(t("API key saved."), 4000);
    },
    "daiku.showLog": () => log.show(),
    "daiku.restartServer": () => server.restart("asked for"),
    "daiku.openSettings": () => vscode.commands.executeCommand("workbench.action.openSettings", "@ext:daiku.daiku"),
    "daiku.doctor": () => showDoctor(server),
    "daiku.grants": () => showGrants(server),
    "daiku.menu": () => showMenu(server),
    [`${VIEW}.open`]: () => vscode.commands.executeCommand("daiku.openChat"),
  };
}

async function showMenu(server: Pick<Server, "state">): Promise<void> {
  const entries: [icon: string, label: string, command: string][] = [
    ["comment-discussion", t("Open Chat"), "daiku.openChat"],
    ["add", t("New chat"), "daiku.newChat"],
    ["history", t("Chat History"), "daiku.history"],
    ["sparkle", t("Select Model"), "daiku.selectModel"],
    ["key", t("Set API Key"), "daiku.setApiKey"],
    ["settings-gear", t("Settings"), "daiku.openSettings"],
    ["output", t("Show Log"), "daiku.showLog"],
    ["shield", t("Manage Saved Permissions"), "daiku.grants"],
    ["pulse", t("Run Diagnostics"), "daiku.doctor"],
    ["debug-restart", t("Restart Server"), "daiku.restartServer"],
  ];
  const placeHolder = server.state.message ?? "";
  const picked = await vscode.window.showQuickPick(
    entries.map(([icon, label, command]) => ({ label: `$(${icon}) ${label}`, command })),
    { title: "Daiku", placeHolder },
  );
  if (picked) await vscode.commands.executeCommand(picked.command);
}

// The item in the status bar: what the server does; a click opens the menu.

import * as vscode from "vscode";
import { t } from "../l10n";
import type { Server } from "../server/server";
import type { Chat } from "./chat";

type Served = Pick<Server, "state" | "onState">;
type Working = Pick<Chat, "waiting" | "working" | "onWorking" | "onWaiting">;

/** Shows the state of server and chat in the status bar until it is disposed of. */
export function createStatus(server: Served, chat: Working): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("daiku.status", vscode.StatusBarAlignment.Right, 90);
  item.name = "Daiku";
  item.command = "daiku.menu";
  const draw = () => {
    const [icon, tooltip, wrong] = face(server, chat);
    item.text = `${icon} Daiku`;
    item.tooltip = tooltip;
    item.accessibilityInformation = { label: `Daiku: ${tooltip}` };
    item.backgroundColor = wrong ? new vscode.ThemeColor("statusBarItem.errorBackground") : undefined;
  };
  draw();
  item.show();
  return vscode.Disposable.from(item, server.onState(draw), chat.onWorking(draw), chat.onWaiting(draw));
}

function face(server: Served, chat: Working): [icon: string, tooltip: string, wrong: boolean] {
  const { phase, message } = server.state;
  if (phase === "failed") return ["$(error)", message ?? t("Failed"), true];
  if (phase === "installing" || phase === "starting") return ["$(loading~spin)", message ?? t("Starting…"), false];
  if (chat.waiting.length > 0) return ["$(bell-dot)", t("Waiting for your approval"), false];
  if (chat.working) return ["$(sync~spin)", t("Working"), false];
  return ["$(tools)", phase === "ready" ? t("Ready") : t("Not started"), false];
}

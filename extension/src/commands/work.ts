// Commands for work items: look at one, pause, resume, cancel, try again, take over.

import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import type { Panel } from "../chat/panel";
import { rememberTakenOver } from "../chat/takenOver";
import type { WorkItem } from "../contract.gen";
import { t } from "../l10n";
import { request } from "../server/rpc";
import type { Server } from "../server/server";
import { isFromKey, isOnlySelecting, nodeIn, selectFocused } from "../trees/focus";
import type { WorkNode, WorkTree } from "../trees/work";
import type { CommandTable } from "./table";

export interface WorkParts {
  server: Pick<Server, "client">;
  chat: Pick<Chat, "open">;
  panel: Pick<Panel, "reveal">;
  work: WorkTree;
  /** What all windows remember. */
  everywhere: vscode.Memento;
  /** Where the extension's own files are. */
  place: vscode.Uri;
}

type Asked = "pause" | "resume" | "cancel" | "retry";
/** What the one key for going on and stopping asks, by state. */
const TOGGLES: Partial<Record<WorkItem["state"], Asked>> = {
  ...{ queued: "pause", processing: "pause", waiting: "pause" },
  ...{ paused: "resume", done: "retry", failed: "retry", dead: "retry", stopped: "retry" },
};
/** The page of the packed user guide about work items. */
const guide = (): string => `docs/${vscode.env.language.startsWith("ja") ? "ja/" : ""}guide/work-items.md`;
const CAN_BE_CANCELLED = new Set<WorkItem["state"]>(["queued", "processing", "waiting", "paused"]);

/** The commands for work items, by their ids. */
export function workCommands(parts: WorkParts): CommandTable {
  const { server, work } = parts;
  const onItem =
    (act: (item: WorkItem) => unknown) =>
    async (argument?: unknown): Promise<unknown> => {
      if (isOnlySelecting()) return undefined;
      const item = await itemOf(work, argument);
      return item && act(item);
    };
  const ask = async ({ item }: WorkItem, wanted: Asked) => {
    await request(await server.client(), `daiku/work/${wanted}`, { item });
    work.refresh();
  };
  return {
    "daiku.workItems": async () => {
      await vscode.commands.executeCommand("daiku.work.focus");
      await server.client();
    },
    "daiku.work.open": onItem((item) => open(parts, item)),
    "daiku.work.openPage": onItem(({ url }) => openAddress(url)),
    "daiku.work.openRequest": onItem(({ requestUrl }) => openAddress(requestUrl)),
    "daiku.work.pause": onItem((item) => ask(item, "pause")),
    "daiku.work.resume": onItem((item) => ask(item, "resume")),
    "daiku.work.retry": onItem((item) => ask(item, "retry")),
    "daiku.work.toggle": onItem((item) => {
      const wanted = item.wanted ? undefined : TOGGLES[item.state];
      return wanted && ask(item, wanted);
    }),
    "daiku.work.cancel": onItem(async (item) => {
      if (CAN_BE_CANCELLED.has(item.state) && (await isSure(item))) await ask(item, "cancel");
    }),
    "daiku.work.takeOver": onItem((item) => takeOver(parts, item)),
    "daiku.work.refresh": () => work.refresh(),
    "daiku.work.guide": () => {
      const page = vscode.Uri.joinPath(parts.place, guide());
      return vscode.commands.executeCommand("markdown.showPreview", page);
    },
  };
}

/** What a menu hands over, else what has the focus in the tree or is selected there. */
async function itemOf({ view }: WorkTree, argument: unknown): Promise<WorkItem | undefined> {
  const given = nodeIn<WorkNode>(argument) ?? (isFromKey(argument) ? await selectFocused(view) : view.selection[0]);
  return given?.kind === "item" ? given.item : undefined;
}

/** Its chat; where none has begun, what the item is. */
async function open({ chat, panel }: WorkParts, { sessionId, url }: WorkItem): Promise<void> {
  if (!sessionId) return openAddress(url);
  await panel.reveal();
  await chat.open(sessionId);
}

/** A page in the browser, a file of this machine in the editor, and nothing else: others wrote the address. */
async function openAddress(address: string): Promise<void> {
  if (!address) return void vscode.window.showInformationMessage(t("Nothing to open yet."));
  const uri = vscode.Uri.parse(address);
  if (uri.scheme === "https" || uri.scheme === "http") await vscode.env.openExternal(uri);
  else if (uri.scheme === "file" && uri.path.endsWith(".md"))
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
}

async function isSure({ item, title, branch }: WorkItem): Promise<boolean> {
  const yes = t("Cancel Work Item");
  const detail = branch ? t("Completed work remains on the branch {0}.", branch) : "";
  const question = t("Cancel work on “{0}”?", title || item);
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, yes)) === yes;
}

/** Has it paused, and opens its files in a window of their own, where its chat goes on. */
async function takeOver(
  { server, chat, panel, work, everywhere }: WorkParts,
  { item, title }: WorkItem,
): Promise<void> {
  const client = await server.client();
  const name = title || item;
  const place = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: t("Pausing “{0}” at its next step…", name) },
    () => request(client, "daiku/work/takeOver", { item }),
  );
  work.refresh();
  if (place.item.state === "processing") {
    const words = t("“{0}” is still running a long step and pauses afterward. Take over once it has paused.", name);
    return void vscode.window.showInformationMessage(words);
  }
  const { sessionId, branch } = place.item;
  if (place.folder) {
    await rememberTakenOver(everywhere, { folder: place.folder, session: sessionId });
    const folder = vscode.Uri.file(place.folder);
    await vscode.commands.executeCommand("vscode.openFolder", folder, { forceNewWindow: true });
    return;
  }
  if (sessionId) {
    await panel.reveal();
    await chat.open(sessionId);
  }
  const where = branch ? t("The files for “{0}” are not on this computer. The branch is {1}.", name, branch) : "";
  void vscode.window.showInformationMessage(where || t("Work on “{0}” has not started yet.", name));
}

// The tree "Sessions": the chats of this workspace, the newest first; a click opens one.

import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import type { Session } from "../contract.gen";
import { t } from "../l10n";
import { ago } from "../pure/text/format";
import type { Server } from "../server/server";

const SESSIONS_VIEW = "daiku.sessions";

const ICONS: Record<Session["status"], [icon: string, color?: string]> = {
  idle: ["comment"],
  completed: ["comment"],
  completed_unverified: ["warning", "list.warningForeground"],
  cancelled: ["comment"],
  running: ["sync~spin"],
  waiting: ["question", "list.warningForeground"],
  paused: ["debug-pause"],
  interrupted: ["debug-disconnect", "list.warningForeground"],
  failed: ["error", "list.errorForeground"],
  limit: ["warning", "list.warningForeground"],
};
const statusWords = (): Partial<Record<Session["status"], string>> => ({
  running: t("running"),
  waiting: t("waiting for your answer"),
  paused: t("paused"),
  interrupted: t("interrupted"),
  completed_unverified: t("not verified"),
  failed: t("failed"),
  limit: t("Limit reached"),
});

export interface SessionsTree extends vscode.Disposable {
  readonly view: vscode.TreeView<Session>;
  readonly sessions: readonly Session[];
  /** Shows only chats that contain these words; none: all. */
  search(query: string): Promise<void>;
  refresh(): Promise<void>;
}

type Listed = Pick<Chat, "current" | "list" | "onWorking" | "onChunks">;
type Served = Pick<Server, "running" | "onState">;

/** Shows the tree of chats, asked for again as chats begin, end and change. */
export function createSessionsTree(chat: Listed, server: Served): SessionsTree {
  const changed = new vscode.EventEmitter<undefined>();
  let sessions: readonly Session[] = [];
  let query = "";
  const provider: vscode.TreeDataProvider<Session> = {
    onDidChangeTreeData: changed.event,
    getChildren: (node) => (node ? [] : [...sessions]),
    getTreeItem: (session) => item(session, session.sessionId === chat.current),
    getParent: () => undefined,
  };
  const view = vscode.window.createTreeView(SESSIONS_VIEW, { treeDataProvider: provider });
  const refresh = async () => {
    // A tree that nobody looks at starts no server.
    if (!server.running()) return;
    sessions = await chat.list(query);
    view.message = query
      ? sessions.length
        ? t("Chats matching “{0}”", query)
        : t("No chats match “{0}”.", query)
      : "";
    void vscode.commands.executeCommand("setContext", "daiku.sessionsSearched", query !== "");
    changed.fire(undefined);
  };
  const soon = () => void refresh().catch(() => undefined);
  const followed = [
    server.onState(({ phase }) => phase === "ready" && soon()),
    chat.onWorking(soon),
    chat.onChunks((chunks) => {
      if (chunks.some(({ type }) => type === "run_started") || chunks.length === 0) soon();
    }),
    view.onDidChangeVisibility(({ visible }) => visible && soon()),
  ];
  return {
    view,
    get sessions() {
      return sessions;
    },
    search: async (words) => {
      query = words.trim();
      await refresh();
    },
    refresh,
    dispose: () => vscode.Disposable.from(view, changed, ...followed).dispose(),
  };
}

function item(session: Session, current: boolean): vscode.TreeItem {
  const title = session.title || t("New chat");
  const made = new vscode.TreeItem(current ? { label: title, highlights: [[0, title.length]] } : title);
  const words = statusWords()[session.status];
  const when = session.updatedAt ? ago(session.updatedAt, vscode.env.language, t("now")) : "";
  const [icon, color] = ICONS[session.status];
  made.id = session.sessionId;
  made.description = [words, when, current ? t("current") : ""].filter(Boolean).join(" · ");
  made.iconPath = new vscode.ThemeIcon(icon, color ? new vscode.ThemeColor(color) : undefined);
  made.contextValue = current ? "session.open" : "session";
  made.tooltip = `${title}\n${new Date(session.updatedAt).toLocaleString(vscode.env.language)}${words ? `\n${words}` : ""}`;
  made.accessibilityInformation = {
    label: [title, words, when, current ? t("current") : ""].filter(Boolean).join(", "),
  };
  made.command = { command: "daiku.openSession", title: t("Open Chat"), arguments: [session] };
  return made;
}

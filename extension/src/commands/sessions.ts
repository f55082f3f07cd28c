// Commands for chats of the past: find, open, fork, export, delete.

import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import type { Panel } from "../chat/panel";
import { deleteSession } from "../chat/requests";
import { showTrace } from "../chat/trace";
import { askRestoreFiles } from "../chat/undo";
import type { Session } from "../contract.gen";
import { t } from "../l10n";
import { forkPointsOf } from "../pure/chat/conversation";
import { request } from "../server/rpc";
import type { Server } from "../server/server";
import { isFromKey, isOnlySelecting, selectFocused } from "../trees/focus";
import type { SessionsTree } from "../trees/sessions";
import type { CommandTable } from "./table";

export interface SessionParts {
  chat: Pick<Chat, "current" | "chunks" | "open" | "fork" | "remove">;
  server: Pick<Server, "client">;
  panel: Pick<Panel, "reveal" | "post">;
  sessions: SessionsTree;
}

/** The commands for chats of the past, by their ids. */
export function sessionCommands(parts: SessionParts): CommandTable {
  const { chat, sessions, panel, server } = parts;
  const idOf = (argument: unknown): string | undefined =>
    sessionIn(argument)?.sessionId ?? sessions.view.selection[0]?.sessionId ?? chat.current;
  const openLines = (id: string) => exportSession(server, id, "trace");
  return {
    "daiku.openSession": async (argument) => {
      const id = idOf(argument);
      if (!id || isOnlySelecting()) return;
      await panel.reveal();
      await chat.open(id);
      await sessions.refresh();
    },
    "daiku.sessions.search": async () => {
      const title = t("Search chats");
      const words = await vscode.window.showInputBox({
        title,
        prompt: t("Enter words from the chat. Leave empty to show all chats."),
      });
      if (words === undefined) return;
      await sessions.search(words);
      const [first] = sessions.sessions;
      if (first) await sessions.view.reveal(first, { select: true, focus: true });
    },
    "daiku.sessions.clearSearch": () => sessions.search(""),
    "daiku.sessions.refresh": () => sessions.refresh(),
    "daiku.deleteSession": async (argument) => {
      const id = isFromKey(argument) ? (await selectFocused(sessions.view))?.sessionId : idOf(argument);
      if (id && (await deleteSession(chat, id))) await sessions.refresh();
    },
    "daiku.exportSession": (argument) => exportSession(server, idOf(argument), "markdown"),
    "daiku.showTrace": async (argument) => {
      const id = idOf(argument);
      if (!id) return void vscode.window.showInformationMessage(t("No chat to show a trace for."));
      await showTrace({ server, openPlace: (...place) => openPlace(parts, ...place), openLines }, id);
    },
    "daiku.fork": (argument) => fork(parts, sessionIn(argument)),
  };
}

const sessionIn = (argument: unknown): Session | undefined =>
  typeof argument === "object" && argument !== null && "sessionId" in argument ? (argument as Session) : undefined;

/** As a document of its own: a chat to read, or a trace to look into. */
async function exportSession(
  server: SessionParts["server"],
  sessionId: string | undefined,
  format: "markdown" | "trace",
): Promise<void> {
  if (!sessionId) return void vscode.window.showInformationMessage(t("No chat to export."));
  const { text } = await request(await server.client(), "daiku/session/export", { sessionId, format });
  const language = format === "markdown" ? "markdown" : "jsonl";
  const known = (await vscode.languages.getLanguages()).includes(language);
  const document = await vscode.workspace.openTextDocument({ language: known ? language : "json", content: text });
  await vscode.window.showTextDocument(document, { preview: false });
}

/** Opens the chat, and shows in it what begins there. */
async function openPlace({ chat, panel }: SessionParts, session: string, seq: number, callId: string): Promise<void> {
  await panel.reveal();
  if (chat.current !== session) await chat.open(session);
  panel.post({ type: "place", seq, callId });
}

/** A new chat that begins like the old one: from its end, or from any message of the open one. */
async function fork({ chat, panel, server }: SessionParts, session: Session | undefined): Promise<void> {
  if (session && session.sessionId !== chat.current) {
    await chat.fork(session.sessionId, session.lastSeq);
    return panel.reveal();
  }
  const { current } = chat;
  const places = forkPointsOf(chat.chunks);
  if (!current || places.length === 0) return void vscode.window.showInformationMessage(t("No chat to fork."));
  const entries = [...places].reverse().map(({ atSeq, who, text }) => ({
    label: `$(${who === "person" ? "account" : "tools"}) ${text.trim().split("\n")[0]?.slice(0, 100) ?? ""}`,
    description: who === "person" ? t("before this message, to edit it") : t("after this response"),
    atSeq,
  }));
  const options = { title: t("Fork Chat from Here"), placeHolder: t("Select the message to start from") };
  const place = await vscode.window.showQuickPick(entries, options);
  if (!place) return;
  await server.client();
  const files = await askRestoreFiles(chat.chunks, place.atSeq);
  if (files === undefined) return;
  await chat.fork(current, place.atSeq, files);
  await panel.reveal();
}

// Commands for the open chat: show it, stop, undo, answer the oldest question, resume, attach what is selected.

import * as vscode from "vscode";
import { answerOldest } from "../chat/approvals";
import type { Chat } from "../chat/chat";
import type { Panel } from "../chat/panel";
import { undo } from "../chat/undo";
import { currentEditor, fileAttachment, selectionAttachment } from "../editor/context";
import { t } from "../l10n";
import { lastEdits, lastRun } from "../pure/chat/conversation";
import type { Attachment } from "../pure/chat/panel";
import type { Models } from "../server/models";
import type { CommandTable } from "./table";

export interface ChatParts {
  chat: Pick<Chat, "newChat" | "waiting" | "stop" | "chunks" | "undo" | "approve" | "list" | "open" | "resume">;
  panel: Pick<Panel, "reveal" | "post">;
  models: Pick<Models, "select">;
}

/** The commands for the open chat, by their ids. */
export function chatCommands({ chat, panel, models }: ChatParts): CommandTable {
  const show = async (what: "composer" | "history" | "approval") => {
    await panel.reveal();
    panel.post({ type: "focus", what });
  };
  return {
    "daiku.newChat": async () => {
      chat.newChat();
      await show("composer");
    },
    "daiku.openChat": () => show(chat.waiting.length ? "approval" : "composer"),
    "daiku.history": () => show("history"),
    "daiku.stop": () => chat.stop(),
    "daiku.undo": () => undo(chat, lastEdits(chat.chunks)),
    "daiku.approve": () => answerOldest(chat, "allow_once"),
    "daiku.reject": () => answerOldest(chat, "reject_once"),
    "daiku.selectModel": () => models.select(),
    "daiku.resume": async () => {
      if (!(await openInterrupted(chat))) return;
      await show("composer");
      const run = lastRun(chat.chunks);
      if (run) await chat.resume(run);
    },
    "daiku.addToChat": async () => {
      const attachment = selectionAttachment() ?? openFileAttachment(currentEditor());
      await panel.reveal();
      if (attachment) panel.post({ type: "attach", attachment });
      panel.post({ type: "focus", what: "composer" });
    },
  };
}

/** Opens the chat that the person picks of those that did not end; answers whether one was picked. */
async function openInterrupted(chat: ChatParts["chat"]): Promise<boolean> {
  const list = (await chat.list("")).filter(({ status }) => status === "interrupted" || status === "paused");
  const picked = await vscode.window.showQuickPick(
    list.map((session) => ({ label: session.title || t("New chat"), description: session.updatedAt, session })),
    { title: t("Resume"), placeHolder: list.length ? t("Select a chat") : t("No interrupted runs.") },
  );
  if (picked) await chat.open(picked.session.sessionId);
  return picked !== undefined;
}

const openFileAttachment = (editor: vscode.TextEditor | undefined): Attachment | undefined =>
  editor && ["file", "untitled"].includes(editor.document.uri.scheme) ? fileAttachment(editor.document.uri) : undefined;

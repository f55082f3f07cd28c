// The commands of the palette, the menus and the lightbulb.

import * as vscode from "vscode";
import type { App } from "../app";
import { answerOldest } from "../chat/approvals";
import { VIEW } from "../chat/panel";
import { undo } from "../chat/requests";
import { currentEditor, fileAttachment, selectionAttachment } from "../editor/context";
import { t } from "../l10n";
import { lastEdits, lastRun } from "../pure/chat/conversation";
import type { Attachment } from "../pure/chat/panel";
import { doctor } from "../server/doctor";
import { showGrants } from "../server/grants";
import { failureOf, raw } from "../server/rpc";
import { askForKey } from "../server/secrets";
import { codeCommands } from "./code";
import { inlineChat } from "./inlineChat";
import { planCommands } from "./plan";
import { reviewCommands } from "./review";
import { sessionCommands } from "./sessions";

export function registerCommands(parts: App): vscode.Disposable[] {
  const table: Record<string, (argument?: unknown) => unknown> = {
    ...chatCommands(parts),
    ...codeCommands(parts),
    ...planCommands(parts),
    ...reviewCommands(parts),
    ...sessionCommands(parts),
    ...serverCommands(parts),
  };
  return Object.entries(table).map(([name, run]) =>
    vscode.commands.registerCommand(name, async (argument?: unknown) => {
      try {
        return await run(argument);
      } catch (error) {
        const failure = failureOf(error);
        if (!failure) return undefined;
        parts.log.error(`${name}: ${raw(error)}`);
        void vscode.window.showErrorMessage([failure.message, failure.hint].filter(Boolean).join(" "));
        return undefined;
      }
    }),
  );
}

function chatCommands({ chat, panel, models }: App): Record<string, (argument?: unknown) => unknown> {
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
      const list = (await chat.list("")).filter(
        (session) => session.status === "interrupted" || session.status === "paused",
      );
      const picked = await vscode.window.showQuickPick(
        list.map((session) => ({ label: session.title || t("New chat"), description: session.updatedAt, session })),
        { title: t("Resume"), placeHolder: list.length ? t("Which chat?") : t("Nothing was interrupted.") },
      );
      if (!picked) return;
      await chat.open(picked.session.sessionId);
      await show("composer");
      const run = lastRun(chat.chunks);
      if (run) await chat.resume(run);
    },
    "daiku.addToChat": async () => {
      const attachment = selectionAttachment() ?? fileOf(currentEditor());
      await panel.reveal();
      if (attachment) panel.post({ type: "attach", attachment });
      panel.post({ type: "focus", what: "composer" });
    },
  };
}

const fileOf = (editor: vscode.TextEditor | undefined): Attachment | undefined =>
  editor && ["file", "untitled"].includes(editor.document.uri.scheme) ? fileAttachment(editor.document.uri) : undefined;

function serverCommands(parts: App): Record<string, (argument?: unknown) => unknown> {
  const { server, log, secrets } = parts;
  return {
    "daiku.setApiKey": async () => {
      if (await askForKey(secrets)) vscode.window.setStatusBarMessage(t("The key is stored."), 4000);
    },
    "daiku.showLog": () => log.show(),
    "daiku.restartServer": () => server.restart("asked for"),
    "daiku.openSettings": () => vscode.commands.executeCommand("workbench.action.openSettings", "@ext:daiku.daiku"),
    "daiku.doctor": () => doctor(parts),
    "daiku.grants": () => showGrants(parts.server),
    "daiku.inlineChat": (argument) => inlineChat(parts, argument),
    // No server has these methods yet; a command that does nothing would say less.
    "daiku.playbook": () => notYet(t("Daiku keeps no playbook yet.")),
    "daiku.workItems": () => notYet(t("Daiku takes no work items from a tracker yet.")),
    "daiku.menu": () => menu(parts),
    [`${VIEW}.open`]: () => vscode.commands.executeCommand("daiku.openChat"),
  };
}

const notYet = (words: string) => void vscode.window.showInformationMessage(words);

async function menu({ server }: App): Promise<void> {
  const entries: [icon: string, label: string, command: string][] = [
    ["comment-discussion", t("Open chat"), "daiku.openChat"],
    ["add", t("New chat"), "daiku.newChat"],
    ["history", t("Chat history"), "daiku.history"],
    ["sparkle", t("Select model"), "daiku.selectModel"],
    ["key", t("Set API key"), "daiku.setApiKey"],
    ["settings-gear", t("Settings"), "daiku.openSettings"],
    ["output", t("Show log"), "daiku.showLog"],
    ["shield", t("What is always allowed"), "daiku.grants"],
    ["pulse", t("Doctor: what is wrong?"), "daiku.doctor"],
    ["debug-restart", t("Restart server"), "daiku.restartServer"],
  ];
  const placeHolder = server.state.message ?? "";
  const picked = await vscode.window.showQuickPick(
    entries.map(([icon, label, command]) => ({ label: `$(${icon}) ${label}`, command })),
    { title: "Daiku", placeHolder },
  );
  if (picked) await vscode.commands.executeCommand(picked.command);
}

// What the panel asks for, and what comes of it.

import * as vscode from "vscode";
import type { Chunk, Irrevocable } from "../contract.gen";
import { attachmentOf, candidates, currentEditor } from "../editor/context";
import { exists, fileOf } from "../editor/paths";
import { t } from "../l10n";
import { acceptedSince, bringsBack, diffsOf, startOf } from "../pure/chat/conversation";
import { type FromPanel, type Mode, PANEL_COMMANDS, type Situation, type ToPanel } from "../pure/chat/panel";
import { revealed } from "../pure/text/ansi";
import type { Diffs } from "../review/editDiff";
import { failureOf, raw, request } from "../server/rpc";
import type { Server } from "../server/server";
import type { Chat } from "./chat";

export interface Wants {
  chat: Chat;
  diffs: Diffs;
  server: Server;
  log: vscode.LogOutputChannel;
  post: (message: ToPanel) => void;
  situation: () => Situation;
  setMode: (mode: Mode) => void;
}

/** Handles the panel's messages; what fails is said in the panel. */
export function listen(wants: Wants): (message: FromPanel) => void {
  return (message) => {
    carryOut(wants, message).catch((error: unknown) => {
      const failure = failureOf(error);
      if (!failure) return;
      wants.log.error(`${message.type}: ${raw(error)}`);
      wants.post({ type: "failed", ...failure });
    });
  };
}

async function carryOut({ chat, diffs, post, situation, setMode, server }: Wants, message: FromPanel): Promise<void> {
  switch (message.type) {
    case "ready":
      post({ type: "hello", situation: situation(), words: vscode.l10n.bundle, locale: vscode.env.language });
      post(chat.snapshot());
      if (vscode.workspace.isTrusted || server.running()) await server.client().catch(() => undefined);
      return;
    case "send":
      await chat.send(message.text, message.context);
      return;
    case "steer":
      return chat.steer(message.text);
    case "earlier":
      return chat.earlier();
    case "stop":
      return chat.stop();
    case "approve": {
      const { run: runId, approvalId, decision, feedback, hunks } = message;
      const more = { ...(feedback ? { feedback } : {}), ...(hunks ? { hunks: [...hunks] } : {}) };
      return chat.approve({ runId, approvalId, decision, ...more });
    }
    case "answer":
      return chat.answer(message.run, message.inputId, message.text);
    case "resume":
      return chat.resume(message.run);
    case "retry": {
      const start = startOf(chat.chunks, message.run);
      if (start && !chat.working) await chat.send(start.data.prompt, start.data.context, { mode: start.data.mode });
      return;
    }
    case "rephrase":
      return rephrase(chat, post, message.run);
    case "planStart":
      await vscode.commands.executeCommand("daiku.plan.start", { planId: message.planId });
      return;
    case "planUpdate": {
      const { planId, steps } = message;
      await request(await server.client(), "daiku/plan/update", { planId, steps: [...steps] });
      return chat.catchUp();
    }
    case "undo":
      return undo(chat, message.checkpointId);
    case "openDiff":
      return diffs.open(message.path, message.diff, diffsOf(chat.chunks));
    case "openFile":
      return openFile(message.path, message.line);
    case "openLink":
      return openLink(message.href);
    case "copy":
      return vscode.env.clipboard.writeText(message.text);
    case "insert":
      await currentEditor()?.edit((edit) => {
        for (const selection of currentEditor()?.selections ?? []) edit.replace(selection, message.text);
      });
      return;
    case "setMode":
      return setMode(message.mode);
    case "sessions": {
      const sessions = await chat.list(message.query);
      return post({ type: "sessions", query: message.query, sessions, current: chat.current });
    }
    case "openSession":
      return chat.open(message.session);
    case "deleteSession":
      if (await deleteSession(chat, message.session))
        post({ type: "sessions", query: "", sessions: await chat.list(""), current: chat.current });
      return;
    case "forkSession":
      return chat.fork(message.session, message.atSeq);
    case "candidates":
      return post({ type: "candidates", query: message.query, candidates: await candidates(message.query) });
    case "command":
      if (PANEL_COMMANDS.includes(message.command)) await vscode.commands.executeCommand(message.command);
      return;
    default:
      return ((unknown: never) => unknown)(message);
  }
}

/** Asks first where changes would go that the person has accepted. */
export async function undo(chat: Chat, checkpointId: string | undefined): Promise<void> {
  if (!checkpointId) {
    vscode.window.setStatusBarMessage(t("There is nothing to undo."), 5000);
    return;
  }
  const accepted = acceptedSince(chat.chunks, checkpointId);
  if (accepted.length > 0) {
    const some = accepted.slice(0, 5).join(", ") + (accepted.length > 5 ? ", …" : "");
    const words = t("You have accepted changes in these files, and undoing takes them back: {0}", some);
    const go = t("Undo");
    if ((await vscode.window.showWarningMessage(words, { modal: true }, go)) !== go) return;
  }
  await restore(chat, checkpointId);
}

/** Brings files back, and says what cannot be brought back: what commands have done. */
export async function restore(chat: Chat, checkpointId: string): Promise<void> {
  const back = bringsBack(chat.chunks, checkpointId);
  const { files, cannotUndo } = await chat.undo(checkpointId);
  const words = restoredWords(files.length, back);
  vscode.window.setStatusBarMessage(`$(${back ? "redo" : "discard"}) ${words}`, 5000);
  // It stands there until the person has read it; nothing waits for that.
  if (cannotUndo.length > 0) void tellWhatStays(words, cannotUndo);
}

const restoredWords = (files: number, back: boolean): string => {
  if (back)
    return files === 1 ? t("Daiku's change is back in 1 file.") : t("Daiku's changes are back in {0} files.", files);
  return files === 1 ? t("1 file is as it was before.") : t("{0} files are as they were before.", files);
};

async function tellWhatStays(words: string, cannotUndo: readonly Irrevocable[]): Promise<void> {
  const commands = cannotUndo.map(({ command }) => revealed(command).split("\n")[0] ?? "");
  const all = t("Show all");
  const few = commands.slice(0, 3).join("; ") + (commands.length > 3 ? "; …" : "");
  const told = `${words} ${t("What these commands did stays as it is: {0}", few)}`;
  const picked = await vscode.window.showWarningMessage(told, ...(commands.length > 3 ? [all] : []));
  if (picked !== all) return;
  const rows = cannotUndo.map(({ command, exitCode, time }) => {
    const end = exitCode === undefined ? "" : t("exit code {0}", exitCode);
    return {
      label: revealed(command).split("\n")[0] ?? "",
      description: end,
      detail: new Date(time).toLocaleString(vscode.env.language),
    };
  });
  await vscode.window.showQuickPick(rows, { title: t("What could not be undone") });
}

/** A new chat up to what was said, and the words in the composer; files as the person wants them. */
async function rephrase(chat: Chat, post: (message: ToPanel) => void, run: string): Promise<void> {
  const start = startOf(chat.chunks, run);
  if (!start) return;
  const { prompt: text, context } = start.data;
  const atSeq = Math.max(0, start.seq - 1);
  const files = await restoring(chat.chunks, atSeq);
  if (files === undefined) return;
  await chat.fork(start.session, atSeq, files);
  post({ type: "prefill", text, attachments: context.map(attachmentOf) });
}

/** Where files were changed after a place: shall they be as they were then? Nothing picked: go on with nothing. */
export async function restoring(chunks: readonly Chunk[], atSeq: number): Promise<boolean | undefined> {
  if (!chunks.some(({ type, seq }) => type === "edit" && seq > atSeq)) return false;
  const choices = [
    { label: `$(file) ${t("Leave the files as they are now")}`, files: false },
    { label: `$(discard) ${t("Bring the files back to how they were then")}`, files: true },
  ];
  return (await vscode.window.showQuickPick(choices, { title: t("Files were changed after this message.") }))?.files;
}

async function openFile(path: string, line?: number): Promise<void> {
  const uri = fileOf(path);
  if (!uri || !(await exists(uri))) {
    vscode.window.setStatusBarMessage(t("There is no file {0} in this workspace.", path), 5000);
    return;
  }
  const at = line ? new vscode.Range(line - 1, 0, line - 1, 0) : undefined;
  await vscode.window.showTextDocument(uri, { preview: true, ...(at ? { selection: at } : {}) });
}

/** Web addresses only; the editor itself asks before it opens one that the person has not trusted. */
async function openLink(href: string): Promise<void> {
  if (/^(https?|mailto):/i.test(href)) await vscode.env.openExternal(vscode.Uri.parse(href, true));
}

/** Asks first; answers whether it is gone. */
export async function deleteSession(chat: Chat, session: string): Promise<boolean> {
  const remove = t("Delete");
  const words = t("Delete this chat? Its checkpoints go with it.");
  if ((await vscode.window.showWarningMessage(words, { modal: true }, remove)) !== remove) return false;
  await chat.remove(session);
  return true;
}

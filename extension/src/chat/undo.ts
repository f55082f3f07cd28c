// Undo Daiku's changes: ask before accepted changes would be lost, and list what cannot be undone.

import * as vscode from "vscode";
import type { Chunk, Irrevocable } from "../contract.gen";
import { t } from "../l10n";
import { acceptedSince, bringsBack } from "../pure/chat/conversation";
import { undoStateOf } from "../pure/chat/undoState";
import { showControls } from "../pure/text/ansi";
import type { Chat } from "./chat";

type Undoing = Pick<Chat, "chunks" | "undo">;

/** Asks first where changes would go that the person has accepted. */
export async function undo(chat: Undoing, checkpointId: string | undefined): Promise<void> {
  if (!checkpointId) {
    vscode.window.setStatusBarMessage(t("Nothing to undo."), 5000);
    return;
  }
  const accepted = acceptedSince(chat.chunks, checkpointId);
  if (accepted.length > 0) {
    const some = accepted.slice(0, 5).join(", ") + (accepted.length > 5 ? ", …" : "");
    const words = t("Undo also reverts changes that you accepted in these files: {0}", some);
    const go = t("Undo");
    if ((await vscode.window.showWarningMessage(words, { modal: true }, go)) !== go) return;
  }
  await restore(chat, checkpointId);
}

/** Brings files back, and says what cannot be brought back: what commands have done. */
export async function restore(chat: Undoing, checkpointId: string): Promise<void> {
  const back = bringsBack(chat.chunks, checkpointId);
  const { files, cannotUndo } = await chat.undo(checkpointId);
  const words = restoredWords(files.length, back);
  vscode.window.setStatusBarMessage(`$(${back ? "redo" : "discard"}) ${words}`, 5000);
  // It stands there until the person has read it; nothing waits for that.
  if (cannotUndo.length > 0) void tellWhatStays(words, cannotUndo);
}

const restoredWords = (files: number, back: boolean): string => {
  if (back)
    return files === 1
      ? t("Reapplied Daiku's changes to 1 file.")
      : t("Reapplied Daiku's changes to {0} files.", files);
  return files === 1 ? t("Reverted 1 file.") : t("Reverted {0} files.", files);
};

async function tellWhatStays(words: string, cannotUndo: readonly Irrevocable[]): Promise<void> {
  const commands = cannotUndo.map(({ command }) => firstLine(command));
  const all = t("Show All");
  const few = commands.slice(0, 3).join("; ") + (commands.length > 3 ? "; …" : "");
  const message = `${words} ${t("The effects of these commands were not undone: {0}", few)}`;
  const picked = await vscode.window.showWarningMessage(message, ...(commands.length > 3 ? [all] : []));
  if (picked !== all) return;
  const rows = cannotUndo.map(({ command, exitCode, time }) => ({
    label: firstLine(command),
    description: exitCode === undefined ? "" : t("exit code {0}", exitCode),
    detail: new Date(time).toLocaleString(vscode.env.language),
  }));
  await vscode.window.showQuickPick(rows, { title: t("Could not be undone") });
}

const firstLine = (command: string): string => showControls(command).split("\n")[0] ?? "";

/** Where files were changed after a place: shall they be as they were then? `undefined`: the person picked nothing. */
export async function askRestoreFiles(chunks: readonly Chunk[], atSeq: number): Promise<boolean | undefined> {
  if (!chunks.some(({ type, seq }) => type === "edit" && seq > atSeq)) return false;
  const choices = [
    { label: `$(file) ${t("Keep files as they are")}`, files: false },
    { label: `$(discard) ${t("Restore files to this point")}`, files: true },
  ];
  return (await vscode.window.showQuickPick(choices, { title: t("Files have changed since this message.") }))?.files;
}

const CHANGES_UNDO: ReadonlySet<Chunk["type"]> = new Set(["edit", "review", "restored"]);

/** Tells the keys whether there is something to undo, to bring back, and a chat at all: others get those that would do nothing. */
export function watchUndo(chat: Pick<Chat, "chunks" | "onChunks">): vscode.Disposable {
  const tell = () => {
    const { chunks } = chat;
    const { standing, redo } = undoStateOf(chunks);
    void vscode.commands.executeCommand("setContext", "daiku.canUndo", standing !== undefined);
    void vscode.commands.executeCommand("setContext", "daiku.canRedo", redo !== undefined);
    void vscode.commands.executeCommand("setContext", "daiku.chatOpen", chunks.length > 0);
  };
  return chat.onChunks((fresh) => {
    const all = fresh[0]?.seq === chat.chunks[0]?.seq;
    if (all || fresh.some(({ type }) => CHANGES_UNDO.has(type))) tell();
  });
}

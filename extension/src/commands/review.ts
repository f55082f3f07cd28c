// Commands that decide on changes, from wherever they are seen: editor, diff or tree; on to the next one after each.

import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import { restore } from "../chat/undo";
import type { ChangedFile, DecideParams } from "../contract.gen";
import { t } from "../l10n";
import { lastTakenBack } from "../pure/chat/conversation";
import { countOpen, linesNow } from "../pure/diff/hunks";
import { type Changes, countWords } from "../review/changes";
import { type Target, targetAtCursor } from "../review/cursor";
import type { HunkName } from "../review/marks";
import { goToNext } from "../review/navigate";
import { fileBehind, type Originals } from "../review/originals";
import type { ChangeNode, ChangesTree } from "../trees/changes";
import { isOnlySelecting, selectFocused } from "../trees/focus";
import type { CommandTable } from "./table";

export interface ReviewParts {
  chat: Pick<Chat, "chunks" | "undo">;
  changes: Changes;
  originals: Originals;
  changesTree: ChangesTree;
}

type Decision = DecideParams["decision"];

/** The commands that decide on changes, by their ids. */
export function reviewCommands(parts: ReviewParts): CommandTable {
  const { changes, originals, chat } = parts;
  return {
    "daiku.openChange": (argument) => {
      const target = isOnlySelecting() ? undefined : targetOf(parts, argument);
      return target && originals.open(target.file, target.hunk);
    },
    "daiku.openChanges": () => (changes.files.length ? originals.openAll() : sayNothingLeft()),
    "daiku.nextHunk": () => step(parts, 1),
    "daiku.previousHunk": () => step(parts, -1),
    "daiku.acceptHunk": (argument) => decideHunk(parts, "accept", argument),
    "daiku.rejectHunk": (argument) => decideHunk(parts, "reject", argument),
    "daiku.acceptFile": (argument) => decideFile(parts, "accept", argument),
    "daiku.rejectFile": (argument) => decideFile(parts, "reject", argument),
    "daiku.acceptSelected": () => decideFocused(parts, "accept"),
    "daiku.rejectSelected": () => decideFocused(parts, "reject"),
    "daiku.acceptAll": () => decide(parts, "accept"),
    "daiku.rejectAll": () => decide(parts, "reject"),
    "daiku.redo": async () => {
      const checkpoint = lastTakenBack(chat.chunks);
      if (checkpoint) await restore(chat, checkpoint);
      else vscode.window.setStatusBarMessage(t("Nothing to redo."), 5000);
    },
  };
}

const sayNothingLeft = (): void =>
  void vscode.window.setStatusBarMessage(`$(info) ${t("No changes to review.")}`, 5000);

function targetOf(parts: ReviewParts, argument: unknown): Target | undefined {
  const { changes } = parts;
  const node = argument as Partial<ChangeNode> & Partial<HunkName>;
  if (typeof argument === "object" && argument !== null) {
    // A node is as old as the tree: the file may have gone on changing.
    const { path, sessionId } = node.file ?? node;
    const named = changes.files.filter((one) => one.path === path);
    const file = named.find((one) => one.sessionId === sessionId) ?? named[0];
    const hunkId = node.kind === "hunk" && "hunk" in node ? node.hunk?.hunkId : node.hunkId;
    if (file) return { file, hunk: file.hunks.find((hunk) => hunk.hunkId === hunkId) };
    const ofUri = argument instanceof vscode.Uri ? changes.of(fileBehind(argument) ?? argument)[0] : undefined;
    const atCursor = targetAtCursor(changes);
    if (ofUri) return atCursor?.file.path === ofUri.path ? atCursor : { file: ofUri, hunk: undefined };
  }
  return targetAtCursor(changes) ?? targetInTree(parts);
}

function targetInTree({ changesTree }: ReviewParts): Target | undefined {
  const node = changesTree.view.selection[0];
  return node && { file: node.file, hunk: node.kind === "hunk" ? node.hunk : undefined };
}

async function decideHunk(parts: ReviewParts, decision: Decision, argument: unknown): Promise<void> {
  const { changes } = parts;
  const target = targetOf(parts, argument);
  const hunk = target?.hunk;
  // A file without hunks is one change.
  if (target && !hunk && target.file.hunks.length === 0) return decideFile(parts, decision, argument);
  if (!target || !hunk) return step(parts, 1);
  const editor = vscode.window.activeTextEditor;
  // The editor's own buttons hand over the file.
  const noNode = argument === undefined || argument instanceof vscode.Uri;
  const fromEditor = noNode && editor !== undefined && targetAtCursor(changes)?.hunk === hunk;
  await decide(parts, decision, target.file, [hunk.hunkId]);
  // Who went elsewhere meanwhile stays there; the editor of a file that was taken back whole closes by itself.
  const stayed = vscode.window.activeTextEditor === editor || editor?.document.isClosed === true;
  if (fromEditor && stayed && changes.files.length) await step(parts, 1, linesNow(hunk).start - 1);
}

/** What has the focus in the tree, a file or one of its hunks. */
async function decideFocused(parts: ReviewParts, decision: Decision): Promise<void> {
  await selectFocused(parts.changesTree.view);
  const target = targetInTree(parts);
  if (target) await decide(parts, decision, target.file, target.hunk && [target.hunk.hunkId]);
  else sayNothingLeft();
}

async function decideFile(parts: ReviewParts, decision: Decision, argument: unknown): Promise<void> {
  const target = targetOf(parts, argument);
  if (target) await decide(parts, decision, target.file);
  else sayNothingLeft();
}

/** Decides on some hunks of a file, on the whole file, or on everything that waits. */
async function decide(
  { changes, chat }: ReviewParts,
  decision: Decision,
  file?: ChangedFile,
  hunkIds?: readonly string[],
): Promise<void> {
  if (changes.files.length === 0) return sayNothingLeft();
  const made = file ? [await changes.decide(decision, file, hunkIds)] : await changes.decideAll(decision);
  const checkpoints = made.filter((checkpoint) => checkpoint !== undefined);
  const left = countWords(countOpen(changes.files));
  const words = decision === "accept" ? t("Accepted. {0} remaining.", left) : t("Rejected. {0} remaining.", left);
  vscode.window.setStatusBarMessage(`$(${decision === "accept" ? "check" : "discard"}) ${words}`, 5000);
  if (decision === "accept" || hunkIds || checkpoints.length === 0) return;
  const back = t("Undo");
  void vscode.window
    .showInformationMessage(t("Rejected the changes and restored the files."), back)
    .then(async (picked) => {
      if (picked === back) for (const checkpoint of checkpoints.reverse()) await restore(chat, checkpoint);
    });
}

async function step({ changes, originals }: ReviewParts, by: 1 | -1, from?: number): Promise<void> {
  if (!(await goToNext(changes, originals, by, from))) sayNothingLeft();
}

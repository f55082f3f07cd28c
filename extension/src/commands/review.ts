// Deciding on changes, by key from wherever they are seen: editor, diff or tree; on to the next one after each.

import * as vscode from "vscode";
import type { App } from "../app";
import { restore } from "../chat/requests";
import type { ChangedFile, ChangeHunk, DecideParams } from "../contract.gen";
import { fileOf } from "../editor/paths";
import { t } from "../l10n";
import { lastTakenBack } from "../pure/chat/conversation";
import { countOpen, hunkAt, linesNow, type Stop, stopFrom, stops } from "../pure/diff/hunks";
import { fileBehind, ORIGINAL } from "../review/originals";
import { type ChangeNode, countWords } from "../trees/changes";
import { focusedIn, onlySelecting } from "../trees/focused";

type Table = Record<string, (argument?: unknown) => unknown>;
type Decision = DecideParams["decision"];

/** What the links of a hover and the lightbulb hand over. */
export interface HunkName {
  sessionId: string;
  path: string;
  hunkId: string;
}

/** Where a command is meant: what a menu, a hover or the cursor says. */
interface Target {
  file: ChangedFile;
  hunk: ChangeHunk | undefined;
}

export function reviewCommands(parts: App): Table {
  const { changes, originals } = parts;
  return {
    "daiku.openChange": (argument) => {
      const target = onlySelecting() ? undefined : targetOf(parts, argument);
      return target && originals.open(target.file, target.hunk);
    },
    "daiku.openChanges": () => (changes.files.length ? originals.openAll() : nothing()),
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
      const checkpoint = lastTakenBack(parts.chat.chunks);
      if (checkpoint) await restore(parts.chat, checkpoint);
      else vscode.window.setStatusBarMessage(t("There is nothing to bring back."), 5000);
    },
  };
}

const nothing = (): void =>
  void vscode.window.setStatusBarMessage(`$(info) ${t("There are no changes to decide on.")}`, 5000);

/** The cursor's place in a changed file, also on the left side of a diff. */
export function hunkHere({ changes }: Pick<App, "changes">): Target | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return undefined;
  const { document, selection } = editor;
  const before = fileBehind(document.uri);
  const side = before ? "before" : "now";
  const here = changes
    .of(before ?? document.uri)
    .map((file) => ({ file, hunk: hunkAt(file, selection.active.line, side, document.lineCount - 1) }));
  return here.find(({ hunk }) => hunk) ?? here[0];
}

function targetOf(parts: App, argument: unknown): Target | undefined {
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
    const here = hunkHere(parts);
    if (ofUri) return here?.file.path === ofUri.path ? here : { file: ofUri, hunk: undefined };
  }
  return hunkHere(parts) ?? selectedInTree(parts);
}

function selectedInTree({ changesTree }: App): Target | undefined {
  const node = changesTree.view.selection[0];
  return node && { file: node.file, hunk: node.kind === "hunk" ? node.hunk : undefined };
}

async function decideHunk(parts: App, decision: Decision, argument: unknown): Promise<void> {
  const target = targetOf(parts, argument);
  const hunk = target?.hunk;
  // A file without hunks is one change.
  if (target && !hunk && target.file.hunks.length === 0) return decideFile(parts, decision, argument);
  if (!target || !hunk) return step(parts, 1);
  const here = vscode.window.activeTextEditor;
  // The editor's own buttons hand over the file.
  const noNode = argument === undefined || argument instanceof vscode.Uri;
  const fromEditor = noNode && here !== undefined && hunkHere(parts)?.hunk === hunk;
  await decide(parts, decision, target.file, [hunk.hunkId]);
  // Who went elsewhere meanwhile stays there; the editor of a file that was taken back whole closes by itself.
  const stayed = vscode.window.activeTextEditor === here || here?.document.isClosed === true;
  if (fromEditor && stayed && parts.changes.files.length) await step(parts, 1, linesNow(hunk).start - 1);
}

/** What has the focus in the tree, a file or one of its hunks. */
async function decideFocused(parts: App, decision: Decision): Promise<void> {
  await focusedIn(parts.changesTree.view);
  const target = selectedInTree(parts);
  if (target) await decide(parts, decision, target.file, target.hunk && [target.hunk.hunkId]);
  else nothing();
}

async function decideFile(parts: App, decision: Decision, argument: unknown): Promise<void> {
  const target = targetOf(parts, argument);
  if (target) await decide(parts, decision, target.file);
  else nothing();
}

async function decide(parts: App, decision: Decision, file?: ChangedFile, hunkIds?: readonly string[]): Promise<void> {
  const { changes } = parts;
  if (changes.files.length === 0) return nothing();
  const made = file ? [await changes.decide(decision, file, hunkIds)] : await changes.decideAll(decision);
  const checkpoints = made.filter((checkpoint) => checkpoint !== undefined);
  const left = countWords(countOpen(changes.files));
  const words = decision === "accept" ? t("Accepted; {0} left.", left) : t("Rejected; {0} left.", left);
  vscode.window.setStatusBarMessage(`$(${decision === "accept" ? "check" : "discard"}) ${words}`, 5000);
  if (decision === "accept" || hunkIds || checkpoints.length === 0) return;
  const back = t("Bring back");
  void vscode.window
    .showInformationMessage(t("The changes are rejected: the files are as they were before."), back)
    .then(async (picked) => {
      if (picked === back) for (const checkpoint of checkpoints.reverse()) await restore(parts.chat, checkpoint);
    });
}

/** Goes to the next place where something waits, or to the one before; `from`: as if the cursor stood there. */
async function step(parts: App, by: 1 | -1, from?: number): Promise<void> {
  const { changes } = parts;
  const editor = vscode.window.activeTextEditor;
  const file = editor && changes.of(fileBehind(editor.document.uri) ?? editor.document.uri)[0];
  const line = from ?? (file ? (editor?.selection.active.line ?? 0) : by > 0 ? -1 : Number.MAX_SAFE_INTEGER);
  const stop = stopFrom(changes.files, file?.path, line, by);
  if (stop) await goTo(parts, stop);
  else nothing();
}

/** The first change of a file that waits, in the plain editor or its diff, whichever is open. */
export async function goToFirst(parts: App, file: ChangedFile): Promise<void> {
  const [stop] = stops([file]);
  if (stop) await goTo(parts, stop);
}

async function goTo({ originals }: App, { path, file, hunk }: Stop): Promise<void> {
  const uri = fileOf(path);
  const tab = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  const inDiff = tab instanceof vscode.TabInputTextDiff && tab.original.scheme === ORIGINAL;
  if (inDiff || file.kind === "delete" || !uri || !hunk) {
    const same = inDiff && tab.modified.toString() === uri?.toString();
    if (!same || !hunk) await originals.open(file, hunk);
    if (hunk) reveal(uri, hunk);
    return;
  }
  await vscode.window.showTextDocument(uri, { preview: true });
  reveal(uri, hunk);
}

/** In whichever editor shows the file now: the plain one, or the right side of a diff. */
function reveal(uri: vscode.Uri | undefined, hunk: ChangeHunk): void {
  const wanted = uri?.toString();
  const editor = [vscode.window.activeTextEditor, ...vscode.window.visibleTextEditors].find(
    (one) => one?.document.uri.toString() === wanted,
  );
  if (!editor) return;
  const line = Math.min(linesNow(hunk).start, editor.document.lineCount - 1);
  editor.selection = new vscode.Selection(line, 0, line, 0);
  editor.revealRange(new vscode.Range(line, 0, line, 0), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

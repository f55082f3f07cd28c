// Goes from change to change: shows the next one in the plain editor or its diff, whichever is open.

import * as vscode from "vscode";
import type { ChangedFile, ChangeHunk } from "../contract.gen";
import { fileOf } from "../editor/paths";
import { linesNow, type Stop, stopFrom, stops } from "../pure/diff/hunks";
import type { Changes } from "./changes";
import { fileBehind, ORIGINAL, type Originals } from "./originals";

type Diffs = Pick<Originals, "open">;

/**
 * Goes to the next place where something waits (`by` 1), or to the one before (-1); false where there is none.
 * `from`: as if the cursor stood in that line, counted from 0.
 */
export async function goToNext(
  changes: Pick<Changes, "files" | "of">,
  originals: Diffs,
  by: 1 | -1,
  from?: number,
): Promise<boolean> {
  const editor = vscode.window.activeTextEditor;
  const file = editor && changes.of(fileBehind(editor.document.uri) ?? editor.document.uri)[0];
  const line = from ?? (file ? (editor?.selection.active.line ?? 0) : by > 0 ? -1 : Number.MAX_SAFE_INTEGER);
  const stop = stopFrom(changes.files, file?.path, line, by);
  if (stop) await goTo(originals, stop);
  return stop !== undefined;
}

/** The first change of a file that waits. */
export async function goToFirst(originals: Diffs, file: ChangedFile): Promise<void> {
  const [stop] = stops([file]);
  if (stop) await goTo(originals, stop);
}

async function goTo(originals: Diffs, { path, file, hunk }: Stop): Promise<void> {
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

// Which change of Daiku the cursor is in, in the plain editor or on either side of a diff.

import * as vscode from "vscode";
import type { ChangedFile, ChangeHunk } from "../contract.gen";
import { hunkAt } from "../pure/diff/hunks";
import type { Changes } from "./changes";
import { fileBehind } from "./originals";

/** A changed file, and the hunk of it where one is meant. */
export interface Target {
  file: ChangedFile;
  hunk: ChangeHunk | undefined;
}

/** The cursor's place in a changed file, also on the left side of a diff. */
export function targetAtCursor(changes: Pick<Changes, "of">): Target | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return undefined;
  const { document, selection } = editor;
  const before = fileBehind(document.uri);
  const side = before ? "before" : "now";
  const targets = changes
    .of(before ?? document.uri)
    .map((file) => ({ file, hunk: hunkAt(file, selection.active.line, side, document.lineCount - 1) }));
  return targets.find(({ hunk }) => hunk) ?? targets[0];
}

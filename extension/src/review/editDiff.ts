// Opens a diff between a file before one edit and the file as it is now.

import path from "node:path";
import * as vscode from "vscode";
import { exists, fileOf } from "../editor/paths";
import { t } from "../l10n";
import { type FileDiff, formerText, parseDiff } from "../pure/diff/diff";

const SCHEME = "daiku-before";
const MOST_KEPT = 100;

interface EditDiffs extends vscode.Disposable {
  /** Opens the file as it was before `diff`; `all` are the session's diffs in order, of which it is one. */
  open(name: string, diff: string, all: readonly string[]): Promise<void>;
}

/** Registers the left sides of these diffs as documents; answers with what opens them. */
export function createEditDiffs(): EditDiffs {
  const texts = new Map<string, string>();
  let serial = 0;
  const virtual = (name: string, text: string): vscode.Uri => {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}`, query: String(++serial) });
    texts.set(uri.query, text);
    for (const key of texts.keys()) if (texts.size > MOST_KEPT) texts.delete(key);
    return uri;
  };
  const provider = vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
    provideTextDocumentContent: (uri) => texts.get(uri.query) ?? "",
  });
  return {
    dispose: () => provider.dispose(),
    open: async (name, diff, all) => {
      const file = fileIn(diff, name);
      if (!file) return;
      const uri = fileOf(name);
      const there = uri !== undefined && (await exists(uri));
      const now = there ? (await vscode.workspace.openTextDocument(uri)).getText() : "";
      const before = textBefore(now, name, diff, all);
      const title = t("{0} (before ↔ current)", path.posix.basename(name));
      if (before !== undefined) {
        const right = there ? uri : virtual(name, "");
        await vscode.commands.executeCommand("vscode.diff", virtual(name, before), right, title, { preview: true });
        return;
      }
      // The file went on changing: only what the edit itself touched can be shown.
      const [left, right] = [virtual(name, side(file, "add")), virtual(name, side(file, "del"))];
      const past = t("{0} (this edit)", path.posix.basename(name));
      await vscode.commands.executeCommand("vscode.diff", left, right, past, { preview: true });
    },
  };
}

const fileIn = (diff: string, name: string): FileDiff | undefined =>
  parseDiff(diff).find((file) => file.newPath === name || file.oldPath === name);

/** The text before `diff`, by undoing the session's edits of the file from the newest back to it. */
function textBefore(now: string, name: string, diff: string, all: readonly string[]): string | undefined {
  const from = all.lastIndexOf(diff);
  const back = from < 0 ? [diff] : all.slice(from).reverse();
  let text: string | undefined = now;
  for (const one of back) {
    const file = fileIn(one, name);
    if (file && text !== undefined) text = formerText(text, file);
  }
  return text;
}

const side = (file: FileDiff, without: "add" | "del"): string =>
  file.hunks
    .map((hunk) =>
      hunk.lines
        .filter((line) => line.kind !== without)
        .map((line) => line.text)
        .join("\n"),
    )
    .join("\n⋯\n");

// The left side of the editor's own diff: a file as it was before the chat changed it.

import * as vscode from "vscode";
import type { ChangedFile, ChangeHunk } from "../contract.gen";
import { exists, fileOf } from "../editor/paths";
import { t } from "../l10n";
import { linesNow } from "../pure/diff/hunks";
import type { Changes } from "./changes";

export const ORIGINAL = "daiku-original";
/** The side of a diff where there is no file. */
const NONE = "none";

export interface Originals extends vscode.Disposable {
  /** The diff of a changed file, at a hunk where one is given. */
  open(file: ChangedFile, hunk?: ChangeHunk): Promise<void>;
  /** All changed files in one editor. */
  openAll(): Promise<void>;
}

/** The file that a document of ours is the former text of. */
export function fileBehind(uri: vscode.Uri): vscode.Uri | undefined {
  if (uri.scheme !== ORIGINAL) return undefined;
  return fileOf(new URLSearchParams(uri.query).get("path") ?? "");
}

/** Registers the original texts of changed files as documents; answers with what opens their diffs. */
export function createOriginals(changes: Pick<Changes, "files" | "original" | "onChange">): Originals {
  const fresh = new vscode.EventEmitter<vscode.Uri>();
  const uriOf = ({ sessionId: session, path }: ChangedFile, side = ""): vscode.Uri =>
    vscode.Uri.from({
      scheme: ORIGINAL,
      path: `/${path}`,
      query: new URLSearchParams({ session, path, ...(side ? { side } : {}) }).toString(),
    });
  const provider: vscode.TextDocumentContentProvider = {
    onDidChange: fresh.event,
    provideTextDocumentContent: async (uri) => {
      const asked = new URLSearchParams(uri.query);
      if (asked.get("side") === NONE) return "";
      return changes.original(asked.get("session") ?? "", asked.get("path") ?? "");
    },
  };
  const sides = async (file: ChangedFile): Promise<[left: vscode.Uri, right: vscode.Uri]> => {
    const uri = fileOf(file.path);
    const there = uri !== undefined && file.kind !== "delete" && (await exists(uri));
    return [uriOf(file), there ? uri : uriOf(file, NONE)];
  };
  const followed = [
    vscode.workspace.registerTextDocumentContentProvider(ORIGINAL, provider),
    changes.onChange(() => {
      for (const { uri } of vscode.workspace.textDocuments) if (uri.scheme === ORIGINAL) fresh.fire(uri);
    }),
  ];
  return {
    open: async (file, hunk) => {
      const [left, right] = await sides(file);
      const title = t("{0} (Daiku changes)", file.path.split("/").at(-1) ?? file.path);
      const line = hunk ? linesNow(hunk).start : undefined;
      const selection = line === undefined ? {} : { selection: new vscode.Range(line, 0, line, 0) };
      await vscode.commands.executeCommand("vscode.diff", left, right, title, { preview: true, ...selection });
    },
    openAll: async () => {
      const list = await Promise.all(
        changes.files.map(async (file) => {
          const [left, right] = await sides(file);
          return [fileOf(file.path) ?? right, left, right];
        }),
      );
      await vscode.commands.executeCommand("vscode.changes", t("Daiku changes"), list);
    },
    dispose: () => vscode.Disposable.from(fresh, ...followed).dispose(),
  };
}

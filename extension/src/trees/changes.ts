// The tree "Changes": the files that Daiku changed and their hunks, with what is decided of them.

import path from "node:path";
import * as vscode from "vscode";
import type { ChangedFile, ChangeHunk, FileStat } from "../contract.gen";
import { fileOf } from "../editor/paths";
import { t } from "../l10n";
import { countOpen, countsOf, firstWords, isOpen, linesNow } from "../pure/diff/hunks";
import { type Changes, countWords } from "../review/changes";

const CHANGES_VIEW = "daiku.changes";

export type ChangeNode = { kind: "file"; file: ChangedFile } | { kind: "hunk"; file: ChangedFile; hunk: ChangeHunk };

export interface ChangesTree extends vscode.Disposable {
  readonly view: vscode.TreeView<ChangeNode>;
}

const kindWords = (): Record<FileStat["kind"], string> => ({
  create: t("new"),
  edit: "",
  delete: t("deleted"),
  rename: t("renamed"),
});

/** Shows the tree of changes, and how many wait as its badge. */
export function createChangesTree(changes: Pick<Changes, "files" | "known" | "onChange">): ChangesTree {
  const changed = new vscode.EventEmitter<undefined>();
  const provider: vscode.TreeDataProvider<ChangeNode> = {
    onDidChangeTreeData: changed.event,
    getTreeItem: (node) => (node.kind === "file" ? fileItem(node.file) : hunkItem(node.file, node.hunk)),
    getChildren: (node) => {
      if (!node) return changes.files.map((file) => ({ kind: "file", file }));
      return node.kind === "file" ? node.file.hunks.map((hunk) => ({ kind: "hunk", file: node.file, hunk })) : [];
    },
    getParent: (node) => (node.kind === "hunk" ? { kind: "file", file: node.file } : undefined),
  };
  const view = vscode.window.createTreeView(CHANGES_VIEW, {
    treeDataProvider: provider,
    showCollapseAll: true,
  });
  const draw = () => {
    const count = countOpen(changes.files);
    const words = count.changes ? countWords(count) : "";
    view.description = words && !changes.known ? t("{0} (last known)", words) : words;
    view.badge = count.changes ? { value: count.changes, tooltip: countWords(count) } : undefined;
    changed.fire(undefined);
  };
  const followed = changes.onChange(draw);
  draw();
  return { view, dispose: () => vscode.Disposable.from(view, changed, followed).dispose() };
}

function fileItem(file: ChangedFile): vscode.TreeItem {
  const { None, Expanded } = vscode.TreeItemCollapsibleState;
  const uri = fileOf(file.path);
  const made = new vscode.TreeItem(path.posix.basename(file.path), file.hunks.length ? Expanded : None);
  const folder = path.posix.dirname(file.path);
  const words = [kindWords()[file.kind], file.binary ? t("binary") : "", isOpen(file) ? "" : t("accepted")];
  const said = words.filter(Boolean).join(", ");
  made.id = `${file.sessionId}/${file.path}`;
  if (uri) made.resourceUri = uri;
  made.iconPath = vscode.ThemeIcon.File;
  made.description = [`+${file.added} −${file.removed}`, said, folder === "." ? "" : folder]
    .filter(Boolean)
    .join(" · ");
  made.contextValue = isOpen(file) ? "file.open" : "file.accepted";
  made.tooltip = file.before ? `${file.before} → ${file.path}` : file.path;
  const lines = t("{0} lines added, {1} removed", file.added, file.removed);
  made.accessibilityInformation = { label: [file.path, said, lines].filter(Boolean).join(", ") };
  made.command = { command: "daiku.openChange", title: t("Open Diff"), arguments: [{ kind: "file", file }] };
  return made;
}

function hunkItem(file: ChangedFile, hunk: ChangeHunk): vscode.TreeItem {
  const { start, end } = linesNow(hunk);
  const where = end > start + 1 ? t("lines {0}–{1}", start + 1, end) : t("line {0}", start + 1);
  const { added, removed } = countsOf(hunk);
  const open = hunk.state === "open";
  const made = new vscode.TreeItem(firstWords(hunk) || where);
  const touched = hunk.touched ? t("also changed by you") : "";
  const said = [where, open ? t("pending review") : t("accepted"), touched].filter(Boolean);
  const shown = [`+${added} −${removed}`, where, open ? "" : t("accepted"), touched].filter(Boolean);
  made.id = `${file.sessionId}/${file.path}/${hunk.hunkId}`;
  made.description = shown.join(" · ");
  made.iconPath = open
    ? new vscode.ThemeIcon(
        added === 0 ? "diff-removed" : removed === 0 ? "diff-added" : "diff-modified",
        new vscode.ThemeColor(
          added === 0
            ? "gitDecoration.deletedResourceForeground"
            : removed === 0
              ? "gitDecoration.addedResourceForeground"
              : "gitDecoration.modifiedResourceForeground",
        ),
      )
    : new vscode.ThemeIcon("pass", new vscode.ThemeColor("testing.iconPassed"));
  made.contextValue = open ? "hunk.open" : "hunk.accepted";
  made.tooltip = new vscode.MarkdownString().appendCodeblock(hunk.text, "diff");
  const lines = t("{0} lines added, {1} removed", added, removed);
  made.accessibilityInformation = { label: [firstWords(hunk), ...said, lines].join(", ") };
  made.command = { command: "daiku.openChange", title: t("Open Diff"), arguments: [{ kind: "hunk", file, hunk }] };
  return made;
}

// Undecided changes in the editor: decorations beside the lines, and accept/reject in hover and lightbulb.

import * as vscode from "vscode";
import type { ChangedFile, ChangeHunk } from "../contract.gen";
import { t } from "../l10n";
import { countOpen, countsOf, linesNow, openHunks, stops } from "../pure/diff/hunks";
import { type Changes, countWords } from "./changes";
import { type Target, targetAtCursor } from "./cursor";

type Kind = "added" | "changed" | "removed";
const COLORS: Record<Kind, string> = {
  added: "editorGutter.addedBackground",
  changed: "editorGutter.modifiedBackground",
  removed: "editorGutter.deletedBackground",
};

const kindOf = (hunk: ChangeHunk): Kind => {
  const { added, removed } = countsOf(hunk);
  return added === 0 ? "removed" : removed === 0 ? "added" : "changed";
};

/** Names a hunk in the links of a hover and in the lightbulb. */
export interface HunkName {
  sessionId: string;
  path: string;
  hunkId: string;
}

type Listed = Pick<Changes, "files" | "of" | "onChange">;

/** The looks of marks in an editor. */
interface Looks {
  kinds: Record<Kind, vscode.TextEditorDecorationType>;
  /** Behind the lines that were added. */
  background: vscode.TextEditorDecorationType;
  /** Words after the line that the cursor is in. */
  note: vscode.TextEditorDecorationType;
}

/** Marks the open changes in every visible editor, for as long as it is not disposed of. `extension`: where our icons are. */
export function watchMarks(changes: Listed, extension: vscode.Uri): vscode.Disposable {
  const looks = createLooks(extension);
  const drawCursor = () => drawAtCursor(changes, looks);
  const drawAll = () => {
    for (const editor of vscode.window.visibleTextEditors) drawMarks(editor, changes, looks);
    drawCursor();
  };
  return vscode.Disposable.from(
    ...[...Object.values(looks.kinds), looks.note, looks.background],
    changes.onChange(drawAll),
    vscode.window.onDidChangeVisibleTextEditors(drawAll),
    vscode.window.tabGroups.onDidChangeTabs(drawAll),
    vscode.window.onDidChangeActiveTextEditor(drawCursor),
    vscode.window.onDidChangeTextEditorSelection(drawCursor),
    vscode.languages.registerCodeActionsProvider({ scheme: "file" }, lightbulb(changes), {
      providedCodeActionKinds: [vscode.CodeActionKind.QuickFix],
    }),
  );
}

function drawMarks(editor: vscode.TextEditor, changes: Listed, { kinds, background }: Looks): void {
  const { document } = editor;
  const marked = changes.of(document.uri).flatMap((file) => openHunks(file).map((hunk) => ({ file, hunk })));
  for (const kind of Object.keys(kinds) as Kind[]) {
    const own = marked.filter(({ hunk }) => kindOf(hunk) === kind);
    editor.setDecorations(
      kinds[kind],
      own.map(({ file, hunk }) => mark(document, file, hunk, changes)),
    );
  }
  // A diff shows by itself what was added.
  const shown = inDiff(editor) ? [] : marked.filter(({ hunk }) => kindOf(hunk) !== "removed");
  editor.setDecorations(
    background,
    shown.map(({ hunk }) => rangeOf(document, hunk)),
  );
}

/** The note beside the change that the cursor is in, and what keys and menus are told of it. */
function drawAtCursor(changes: Listed, { note }: Looks): void {
  const target: Target | undefined = targetAtCursor(changes);
  void vscode.commands.executeCommand("setContext", "daiku.fileChanged", target !== undefined);
  void vscode.commands.executeCommand("setContext", "daiku.hunk", target?.hunk !== undefined);
  for (const editor of vscode.window.visibleTextEditors) {
    const active = editor === vscode.window.activeTextEditor && changes.of(editor.document.uri).length > 0;
    const hunk = active ? target?.hunk : undefined;
    editor.setDecorations(note, hunk ? [noteFor(editor.document, hunk, changes)] : []);
  }
}

/** One of the two editors of a diff. */
const inDiff = (editor: vscode.TextEditor): boolean =>
  vscode.window.tabGroups.all.some(({ viewColumn, activeTab }) => {
    const tab = activeTab?.input;
    const uri = editor.document.uri.toString();
    const here = editor.viewColumn === undefined || editor.viewColumn === viewColumn;
    return here && tab instanceof vscode.TabInputTextDiff && tab.modified.toString() === uri;
  });

/** One look for each kind: a shape of its own beside a colour of the theme. */
function createLooks(extension: vscode.Uri): Looks {
  const sign = (kind: Kind, theme: "light" | "dark") => vscode.Uri.joinPath(extension, "media", `${kind}-${theme}.svg`);
  const make = (kind: Kind) =>
    vscode.window.createTextEditorDecorationType({
      isWholeLine: true,
      overviewRulerLane: vscode.OverviewRulerLane.Left,
      overviewRulerColor: new vscode.ThemeColor(COLORS[kind]),
      gutterIconSize: "contain",
      light: { gutterIconPath: sign(kind, "light") },
      dark: { gutterIconPath: sign(kind, "dark") },
      borderColor: new vscode.ThemeColor(COLORS[kind]),
      ...(kind === "removed"
        ? { borderWidth: "2px 0 0 0", borderStyle: "dashed" }
        : { borderWidth: "0 0 0 3px", borderStyle: "solid" }),
    });
  const note = vscode.window.createTextEditorDecorationType({
    after: { margin: "0 0 0 3em", color: new vscode.ThemeColor("editorCodeLens.foreground"), fontStyle: "italic" },
  });
  const background = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("diffEditor.insertedLineBackground"),
  });
  return { kinds: { added: make("added"), changed: make("changed"), removed: make("removed") }, note, background };
}

const rangeOf = (document: vscode.TextDocument, hunk: ChangeHunk): vscode.Range => {
  const { start, end } = linesNow(hunk);
  const last = document.lineCount - 1;
  const [from, to] = [Math.min(start, last), Math.min(Math.max(start, end - 1), last)];
  return new vscode.Range(from, 0, to, document.lineAt(to).text.length);
};

function mark(
  document: vscode.TextDocument,
  file: ChangedFile,
  hunk: ChangeHunk,
  changes: Listed,
): vscode.DecorationOptions {
  const words = new vscode.MarkdownString("", true);
  words.isTrusted = { enabledCommands: ["daiku.acceptHunk", "daiku.rejectHunk", "daiku.openChange"] };
  const args = encodeURIComponent(JSON.stringify([nameOf(file, hunk)]));
  const link = (icon: string, label: string, command: string) => `[$(${icon}) ${label}](command:${command}?${args})`;
  words.appendMarkdown(`**Daiku** · ${nth(hunk, changes.files)}\n\n`);
  words.appendMarkdown(
    [
      link("check", t("Accept"), "daiku.acceptHunk"),
      link("discard", t("Reject"), "daiku.rejectHunk"),
      link("diff", t("Open Diff"), "daiku.openChange"),
    ].join(" &nbsp; "),
  );
  words.appendCodeblock(hunk.text, "diff");
  return { range: rangeOf(document, hunk), hoverMessage: words };
}

const nameOf = ({ sessionId, path }: ChangedFile, { hunkId }: ChangeHunk): HunkName => ({ sessionId, path, hunkId });

/** "Change 2 of 5" */
function nth(hunk: ChangeHunk, files: readonly ChangedFile[]): string {
  const all = stops(files);
  return t("change {0} of {1}", all.findIndex((stop) => stop.hunk === hunk) + 1, all.length);
}

/** At the end of the first line, while the cursor is in the change. */
function noteFor(document: vscode.TextDocument, hunk: ChangeHunk, changes: Listed): vscode.DecorationOptions {
  const { start } = rangeOf(document, hunk);
  const { removed } = countsOf(hunk);
  const gone = removed ? ` · ${removed === 1 ? t("1 line removed") : t("{0} lines removed", removed)}` : "";
  const end = document.lineAt(start.line).range.end;
  const contentText = `Daiku: ${nth(hunk, changes.files)}${gone}`;
  return { range: new vscode.Range(end, end), renderOptions: { after: { contentText } } };
}

function lightbulb(changes: Listed): vscode.CodeActionProvider {
  return {
    provideCodeActions: ({ uri }, range) => {
      const touching = ({ start, end }: { start: number; end: number }) =>
        range.start.line < Math.max(end, start + 1) && range.end.line >= start;
      const all = changes.of(uri).flatMap((file) => openHunks(file).map((hunk) => ({ file, hunk })));
      const here = all.find(({ hunk }) => touching(linesNow(hunk)));
      if (!here) return [];
      const offer = (title: string, command: string) => {
        const action = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
        action.command = { title, command, arguments: [nameOf(here.file, here.hunk)] };
        return action;
      };
      return [
        offer(t("Accept Daiku's change"), "daiku.acceptHunk"),
        offer(t("Reject Daiku's change"), "daiku.rejectHunk"),
      ];
    },
  };
}

/** "3 changes in 2 files", as long as there are any; a click shows them. */
export function createReviewStatus(changes: Pick<Changes, "files" | "known" | "onChange">): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("daiku.review", vscode.StatusBarAlignment.Left, 10);
  item.name = t("Daiku changes");
  item.command = "daiku.changes.focus";
  const draw = () => {
    const count = countOpen(changes.files);
    const words = countWords(count);
    item.text = `$(diff-multiple) ${words}`;
    item.tooltip = changes.known ? t("Daiku changes pending review") : t("Daiku changes pending review (last known)");
    item.accessibilityInformation = { label: `Daiku: ${words}` };
    if (count.changes > 0) item.show();
    else item.hide();
  };
  draw();
  return vscode.Disposable.from(item, changes.onChange(draw));
}

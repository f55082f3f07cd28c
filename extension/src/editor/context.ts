// What a person can point at: the open file, the selection, the problems, any file of the workspace.

import path from "node:path";
import * as vscode from "vscode";
import type { ContextItem, Cursor } from "../contract.gen";
import { t } from "../l10n";
import type { Attachment } from "../pure/chat/panel";
import { cellOf, wireUriOf } from "./notebooks";
import { toWireRange } from "./ranges";

const MOST_FILES = 30;
const MOST_PROBLEMS = 100;

/** The last text editor: while the panel has the focus there is no active one. */
let last: vscode.TextEditor | undefined;

/** Remembers the last text editor, for the time in which the panel has the focus. */
export function followEditors(context: vscode.ExtensionContext): void {
  last = vscode.window.activeTextEditor;
  context.subscriptions.push(
    vscode.window.onDidChangeActiveTextEditor((editor) => {
      if (editor && editor.document.uri.scheme !== "output") last = editor;
    }),
  );
}

/** The active text editor, else the last one that was active and is still open. */
export const currentEditor = (): vscode.TextEditor | undefined => {
  const editor = vscode.window.activeTextEditor ?? last;
  return editor && !editor.document.isClosed ? editor : undefined;
};

/** Where the person works just now, for what is asked; nothing where no file is open. */
export function cursorPlace(editor = currentEditor()): { cursor?: Cursor } {
  if (editor?.document.uri.scheme !== "file") return {};
  const { line, character } = editor.selection.active;
  return { cursor: { uri: editor.document.uri.toString(), position: { line, character } } };
}

/** A file by its path, a cell by its notebook's and its number. */
function labelOf(uri: vscode.Uri): string {
  const found = cellOf(uri);
  const path = vscode.workspace.asRelativePath(found?.notebook ?? uri);
  return found ? t("{0} (cell {1})", path, found.cell) : path;
}

/** A file to point at, labelled by its name and folder. */
export function fileAttachment(uri: vscode.Uri): Attachment {
  const name = labelOf(uri);
  const folder = path.posix.dirname(name);
  return {
    item: { kind: "file", uri: uri.toString() },
    label: path.posix.basename(name),
    ...(folder === "." ? {} : { detail: folder }),
    icon: "file",
  };
}

/** Selected lines to point at, with their text; `undefined` where nothing is selected. */
export function selectionAttachment(
  editor = currentEditor(),
  range: vscode.Range | undefined = editor?.selection,
): Attachment | undefined {
  if (!editor || !range || range.isEmpty) return undefined;
  const { document } = editor;
  const item: ContextItem = {
    kind: "selection",
    uri: wireUriOf(document.uri),
    range: toWireRange(range),
    text: document.getText(range),
  };
  const lines =
    range.start.line === range.end.line ? `${range.start.line + 1}` : `${range.start.line + 1}–${range.end.line + 1}`;
  return {
    item,
    label: `${path.posix.basename(labelOf(document.uri))}:${lines}`,
    detail: t("Selection"),
    icon: "selection",
  };
}

const ICONS: Partial<Record<ContextItem["kind"], string>> = {
  ...{ file: "file", selection: "selection", diagnostics: "warning", terminal: "terminal", url: "link" },
};

/** What was pointed at earlier, to be pointed at again. */
export function attachmentOf(item: ContextItem): Attachment {
  const { kind, uri, range, text } = item;
  const name = uri ? path.posix.basename(vscode.Uri.parse(uri).path) : (text ?? kind).split("\n")[0]?.slice(0, 40);
  const lines = range ? `:${range.start.line + 1}–${range.end.line + 1}` : "";
  return { item, label: `${name ?? kind}${lines}`, icon: ICONS[kind] ?? "note" };
}

function problemsAttachment(): Attachment | undefined {
  const all = vscode.languages.getDiagnostics();
  const lines = all.flatMap(([file, found]) =>
    found.map(
      (one) =>
        `${labelOf(file)}:${one.range.start.line + 1}: ${vscode.DiagnosticSeverity[one.severity]}: ${one.message}`,
    ),
  );
  if (lines.length === 0) return undefined;
  const item: ContextItem = {
    kind: "diagnostics",
    text: lines.slice(0, MOST_PROBLEMS).join("\n"),
  };
  return { item, label: t("Problems ({0})", lines.length), icon: "warning" };
}

/** What fits the words after an `@`. */
export async function findCandidates(query: string): Promise<Attachment[]> {
  const editor = currentEditor();
  const current = editor && editor.document.uri.scheme === "file" ? fileAttachment(editor.document.uri) : undefined;
  const special = [
    selectionAttachment(editor),
    current && { ...current, detail: t("Current file") },
    problemsAttachment(),
  ].filter((one) => one !== undefined);
  const fits = (one: Attachment) => `${one.label} ${one.detail ?? ""}`.toLowerCase().includes(query.toLowerCase());
  const first = special.filter(fits);
  const had = new Set(first.map((one) => JSON.stringify(one.item)));
  const files = (await findFiles(query)).map(fileAttachment).filter((one) => !had.has(JSON.stringify(one.item)));
  return [...first, ...files].slice(0, MOST_FILES);
}

async function findFiles(query: string): Promise<vscode.Uri[]> {
  const words = query.replace(/[[\]{}*?!\\]/g, "");
  const cut = words.lastIndexOf("/");
  const pattern =
    cut < 0
      ? `**/*${insensitive(words)}*`
      : `**/*${insensitive(words.slice(0, cut))}/**/*${insensitive(words.slice(cut + 1))}*`;
  const found = await vscode.workspace.findFiles(
    pattern,
    "**/{node_modules,.git,__pycache__,.venv,dist,out}/**",
    MOST_FILES * 4,
  );
  return found.sort((a, b) => a.path.length - b.path.length || a.path.localeCompare(b.path));
}

const insensitive = (text: string): string =>
  text.replace(/[a-z]/gi, (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`);

// Notebooks that are open: their cells as they are now, edits of them, and which cell a document is.

import * as vscode from "vscode";
import type { EditNotebookParams, EditNotebookResult, EditorNotebook, NewCell } from "../contract.gen";

const CELL = "vscode-notebook-cell";
const RAW = "raw";

/** The open notebook with this address, whichever of its cells it names. */
export function findNotebook(uri: string): vscode.NotebookDocument | undefined {
  const wanted = vscode.Uri.parse(uri).with({ fragment: "" }).toString();
  return vscode.workspace.notebookDocuments.find((one) => !one.isClosed && one.uri.toString() === wanted);
}

/** The notebook and the number (from 1) of the cell that a document is the text of. */
export function cellOf(uri: vscode.Uri): { notebook: vscode.Uri; cell: number } | undefined {
  if (uri.scheme !== CELL) return undefined;
  const wanted = uri.toString();
  for (const notebook of vscode.workspace.notebookDocuments) {
    const index = notebook.getCells().findIndex((cell) => cell.document.uri.toString() === wanted);
    if (index >= 0) return { notebook: notebook.uri, cell: index + 1 };
  }
  return undefined;
}

/** How a document is named to the server: a cell by its notebook and number. */
export function wireUriOf(uri: vscode.Uri): string {
  const found = cellOf(uri);
  return found ? found.notebook.with({ fragment: `cell=${found.cell}` }).toString(true) : uri.toString();
}

const kindOf = (cell: vscode.NotebookCell) => (cell.kind === vscode.NotebookCellKind.Code ? "code" : "markup");

function idOf({ metadata }: vscode.NotebookCell): string {
  const found: unknown = metadata.id ?? metadata.custom?.id;
  return typeof found === "string" ? found : "";
}

/** The cells of an open notebook as they are now; only `dirty: false` where it is not open. */
export function readNotebook(uri: string): EditorNotebook {
  const notebook = findNotebook(uri);
  if (!notebook) return { dirty: false };
  return {
    dirty: notebook.isDirty,
    cells: notebook.getCells().map((cell) => ({
      uri: cell.document.uri.toString(),
      kind: kindOf(cell),
      language: cell.document.languageId,
      text: plainText(cell.document),
      id: idOf(cell),
    })),
  };
}

/** The editor may hold a cell's lines with another end than the notebook has. */
const plainText = (document: vscode.TextDocument): string => document.getText().replaceAll("\r\n", "\n");

/** Replaces the cells of an open notebook, unless they are no longer those that were expected. */
export async function editNotebook({ uri, expected, cells }: EditNotebookParams): Promise<EditNotebookResult> {
  const notebook = findNotebook(uri);
  if (!notebook) return { applied: false, reason: "it is no longer open" };
  const present = notebook.getCells();
  if (present.length !== expected.length || present.some((cell, i) => plainText(cell.document) !== expected[i]))
    return { applied: false, reason: "its cells were changed meanwhile" };
  const edit = new vscode.WorkspaceEdit();
  const [first, last] = changedSpan(present, cells);
  const isSame = cells.length === present.length && cells.every((cell, i) => cell.at === i && fits(cell, present[i]));
  if (isSame) replaceTexts(edit, present, cells);
  else {
    const span = new vscode.NotebookRange(first, present.length - last);
    const news = cells.slice(first, cells.length - last).map((cell) => cellData(cell, present));
    edit.set(notebook.uri, [vscode.NotebookEdit.replaceCells(span, news)]);
    // Cells on either side stay where they are; only their texts may differ.
    replaceTexts(edit, present.slice(0, first), cells.slice(0, first));
    replaceTexts(edit, present.slice(present.length - last), cells.slice(cells.length - last));
  }
  return { applied: await vscode.workspace.applyEdit(edit), reason: "" };
}

const fits = (cell: NewCell, present: vscode.NotebookCell | undefined): boolean =>
  present !== undefined && cell.kind === kindOf(present) && (cell.kind === "markup" || isRaw(cell) === isRaw(present));

const isRaw = (cell: NewCell | vscode.NotebookCell): boolean =>
  ("language" in cell ? cell.language : cell.document.languageId) === RAW;

/** How many cells stay the same cells at the beginning and at the end. */
function changedSpan(present: readonly vscode.NotebookCell[], cells: readonly NewCell[]): [number, number] {
  const most = Math.min(present.length, cells.length);
  let first = 0;
  while (first < most && cells[first]?.at === first && fits(cells[first] as NewCell, present[first])) first += 1;
  let last = 0;
  while (last < most - first) {
    const cell = cells[cells.length - 1 - last] as NewCell;
    const at = present.length - 1 - last;
    if (cell.at !== at || !fits(cell, present[at])) break;
    last += 1;
  }
  return [first, last];
}

function replaceTexts(
  edit: vscode.WorkspaceEdit,
  present: readonly vscode.NotebookCell[],
  cells: readonly NewCell[],
): void {
  for (const [i, { document }] of present.entries()) {
    const text = cells[i]?.text ?? "";
    if (text === plainText(document)) continue;
    const end = document.lineAt(document.lineCount - 1).range.end;
    edit.replace(document.uri, new vscode.Range(new vscode.Position(0, 0), end), text);
  }
}

function cellData(cell: NewCell, present: readonly vscode.NotebookCell[]): vscode.NotebookCellData {
  const former = typeof cell.at === "number" ? present[cell.at] : undefined;
  const kind = cell.kind === "code" ? vscode.NotebookCellKind.Code : vscode.NotebookCellKind.Markup;
  const data = new vscode.NotebookCellData(kind, cell.text, cell.language);
  if (former) data.metadata = former.metadata;
  if (former && cell.kind === "code") {
    data.outputs = [...former.outputs];
    if (former.executionSummary) data.executionSummary = former.executionSummary;
  }
  return data;
}

// Answers what the server asks of the editor: problems, definitions, references, notebooks, saving.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type {
  EditorDiagnostic,
  EditorDiagnosticsParams,
  EditorDiagnosticsResult,
  EditorLocationsResult,
  EditorPlaceParams,
} from "../contract.gen";
import { cellOf, editNotebook, findNotebook, readNotebook } from "../editor/notebooks";
import { Problems } from "../editor/problems";
import { toWireRange } from "../editor/ranges";
import { answer } from "./rpc";

const SEVERITIES: Record<vscode.DiagnosticSeverity, EditorDiagnostic["severity"]> = {
  [vscode.DiagnosticSeverity.Error]: "error",
  [vscode.DiagnosticSeverity.Warning]: "warning",
  [vscode.DiagnosticSeverity.Information]: "info",
  [vscode.DiagnosticSeverity.Hint]: "hint",
};

/** Registers the handlers of the server's requests to the editor. */
export function answerQueries(client: LanguageClient): vscode.Disposable[] {
  const problems = new Problems();
  return [
    problems,
    answer(client, "daiku/editor/diagnostics", (params) => settledDiagnostics(problems, params)),
    answer(client, "daiku/editor/save", ({ uris }) => save(uris)),
    answer(client, "daiku/editor/definition", (place) => locations("vscode.executeDefinitionProvider", place)),
    answer(client, "daiku/editor/references", (place) => locations("vscode.executeReferenceProvider", place)),
    answer(client, "daiku/editor/notebook", async ({ uri }) => readNotebook(uri)),
    answer(client, "daiku/editor/editNotebook", editNotebook),
  ];
}

async function settledDiagnostics(
  problems: Problems,
  { uri, settle }: EditorDiagnosticsParams,
): Promise<EditorDiagnosticsResult> {
  if (!settle) return diagnostics(uri ?? undefined);
  const opened = await Promise.all(settle.map(documentsOf));
  await problems.settled(opened.flat());
  const wanted = new Set(settle.map((one) => vscode.Uri.parse(one).toString()));
  const all = diagnostics(undefined).diagnostics;
  return { diagnostics: all.filter((one) => one.severity === "error" || wanted.has(one.uri)) };
}

/** Opens a text, for what is looked at nowhere has no problems; a notebook only where it is open. */
async function documentsOf(uri: string): Promise<vscode.TextDocument[]> {
  const notebook = findNotebook(uri);
  if (notebook) return notebook.getCells().map((cell) => cell.document);
  if (/\.ipynb$/i.test(uri)) return [];
  try {
    return [await vscode.workspace.openTextDocument(vscode.Uri.parse(uri))];
  } catch {
    return []; // gone, or no text
  }
}

function diagnostics(uri: string | undefined): EditorDiagnosticsResult {
  const wanted = uri && vscode.Uri.parse(uri).toString();
  const found = vscode.languages.getDiagnostics().flatMap(([file, list]) => {
    const cell = cellOf(file);
    const name = (cell?.notebook ?? file).toString();
    return wanted && name !== wanted ? [] : list.map((one) => toWire(name, cell?.cell, one));
  });
  return { diagnostics: found };
}

const toWire = (uri: string, cell: number | undefined, one: vscode.Diagnostic): EditorDiagnostic => ({
  uri,
  range: toWireRange(one.range),
  severity: SEVERITIES[one.severity],
  message: one.message,
  source: one.source ?? "",
  ...(cell === undefined ? {} : { cell }),
});

async function locations(command: string, { uri, position }: EditorPlaceParams): Promise<EditorLocationsResult> {
  const file = vscode.Uri.parse(uri);
  const place = new vscode.Position(position.line, position.character);
  await vscode.workspace.openTextDocument(file);
  const found = await vscode.commands.executeCommand<(vscode.Location | vscode.LocationLink)[] | undefined>(
    command,
    file,
    place,
  );
  return {
    locations: (found ?? []).map((one) =>
      "targetUri" in one
        ? { uri: one.targetUri.toString(), range: toWireRange(one.targetSelectionRange ?? one.targetRange) }
        : { uri: one.uri.toString(), range: toWireRange(one.range) },
    ),
  };
}

/** Saves what an edit of ours has changed. */
async function save(uris: readonly string[]): Promise<null> {
  const wanted = new Set(uris.map((uri) => vscode.Uri.parse(uri).toString()));
  const dirty = vscode.workspace.textDocuments.filter((one) => one.isDirty && wanted.has(one.uri.toString()));
  const notebooks = uris.map(findNotebook).filter((one) => one?.isDirty);
  await Promise.all([...dirty, ...notebooks].map((one) => one?.save()));
  return null;
}

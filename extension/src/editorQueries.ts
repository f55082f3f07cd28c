// What the editor knows and the server asks for: problems, definitions, references; and that it saves.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type {
  EditorDiagnostic,
  EditorDiagnosticsResult,
  EditorLocationsResult,
  EditorPlaceParams,
  Range,
} from "./contract.gen";
import { answer } from "./rpc";

const SEVERITIES: Record<vscode.DiagnosticSeverity, EditorDiagnostic["severity"]> = {
  [vscode.DiagnosticSeverity.Error]: "error",
  [vscode.DiagnosticSeverity.Warning]: "warning",
  [vscode.DiagnosticSeverity.Information]: "info",
  [vscode.DiagnosticSeverity.Hint]: "hint",
};

export function answerQueries(client: LanguageClient): vscode.Disposable[] {
  return [
    answer(client, "daiku/editor/diagnostics", async ({ uri }) => diagnostics(uri ?? undefined)),
    answer(client, "daiku/editor/save", ({ uris }) => save(uris)),
    answer(client, "daiku/editor/definition", (place) => locations("vscode.executeDefinitionProvider", place)),
    answer(client, "daiku/editor/references", (place) => locations("vscode.executeReferenceProvider", place)),
  ];
}

export function diagnostics(uri: string | undefined): EditorDiagnosticsResult {
  const all: [vscode.Uri, readonly vscode.Diagnostic[]][] = uri
    ? [[vscode.Uri.parse(uri), vscode.languages.getDiagnostics(vscode.Uri.parse(uri))]]
    : vscode.languages.getDiagnostics();
  return {
    diagnostics: all.flatMap(([file, found]) =>
      found.map((one) => ({
        uri: file.toString(),
        range: plain(one.range),
        severity: SEVERITIES[one.severity],
        message: one.message,
        source: one.source ?? "",
      })),
    ),
  };
}

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
        ? { uri: one.targetUri.toString(), range: plain(one.targetSelectionRange ?? one.targetRange) }
        : { uri: one.uri.toString(), range: plain(one.range) },
    ),
  };
}

/** Saves what an edit of ours has changed. */
async function save(uris: readonly string[]): Promise<null> {
  const wanted = new Set(uris.map((uri) => vscode.Uri.parse(uri).toString()));
  const dirty = vscode.workspace.textDocuments.filter((one) => one.isDirty && wanted.has(one.uri.toString()));
  await Promise.all(dirty.map((one) => one.save()));
  return null;
}

/** As the wire has it: the editor's own ranges become arrays in JSON. */
export function plain({ start, end }: vscode.Range): Range {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}

// What the editor lends: parts of what its models say, and edits of texts and notebooks.

import type * as vscode from "vscode";
import type { Like } from "./like";

export class LanguageModelTextPart implements Like<vscode.LanguageModelTextPart> {
  constructor(readonly value: string) {}
}
export class LanguageModelToolCallPart implements Like<vscode.LanguageModelToolCallPart> {
  constructor(
    readonly callId: string,
    readonly name: string,
    readonly input: object,
  ) {}
}
export class LanguageModelToolResultPart implements Like<vscode.LanguageModelToolResultPart> {
  constructor(
    readonly callId: string,
    readonly content: (vscode.LanguageModelTextPart | unknown)[],
  ) {}
}

type Content = readonly unknown[];
export const LanguageModelChatMessage = {
  User: (content: Content) => ({ role: 1, content }),
  Assistant: (content: Content) => ({ role: 2, content }),
};

export class LanguageModelError extends Error {
  static readonly NoPermissions = { name: "NoPermissions" };
  static readonly Blocked = { name: "Blocked" };
  static readonly NotFound = { name: "NotFound" };
  constructor(
    message: string,
    readonly code = "",
  ) {
    super(message);
  }
}

export class NotebookRange implements Like<vscode.NotebookRange> {
  constructor(
    readonly start: number,
    readonly end: number,
  ) {}
}
export class NotebookCellData implements Like<vscode.NotebookCellData> {
  constructor(
    readonly kind: vscode.NotebookCellKind,
    readonly value: string,
    readonly languageId: string,
  ) {}
}
export const NotebookEdit = { replaceCells: (range: NotebookRange, cells: NotebookCellData[]) => ({ range, cells }) };

/** Remembers what was to be changed. */
export class WorkspaceEdit implements Like<vscode.WorkspaceEdit> {
  readonly changes: { uri: vscode.Uri; what: unknown }[] = [];
  replace(uri: vscode.Uri, range: vscode.Range, text: string): void {
    this.changes.push({ uri, what: { range, text } });
  }
  set(uri: vscode.Uri, what: unknown): void {
    this.changes.push({ uri, what });
  }
}

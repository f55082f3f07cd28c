// The editor's values in fast tests: addresses, places in texts, events, and what is only handed over.

import type * as vscode from "vscode";
import type { Like } from "./like";

export class Disposable implements vscode.Disposable {
  readonly #end: () => void;
  constructor(end: () => void) {
    this.#end = end;
  }
  static from(...all: { dispose(): void }[]): Disposable {
    return new Disposable(() => {
      for (const one of all) one.dispose();
    });
  }
  dispose(): void {
    this.#end();
  }
}

export class EventEmitter<T> implements vscode.EventEmitter<T> {
  readonly #listeners = new Set<(value: T) => unknown>();
  readonly event: vscode.Event<T> = (listener) => {
    this.#listeners.add(listener);
    return new Disposable(() => this.#listeners.delete(listener));
  };
  fire(value: T): void {
    for (const listener of [...this.#listeners]) listener(value);
  }
  dispose(): void {
    this.#listeners.clear();
  }
}

export class CancellationTokenSource implements vscode.CancellationTokenSource {
  readonly #event = new EventEmitter<void>();
  readonly token = { isCancellationRequested: false, onCancellationRequested: this.#event.event };
  cancel(): void {
    this.token.isCancellationRequested = true;
    this.#event.fire();
  }
  dispose(): void {}
}

interface Parts {
  scheme?: string;
  authority?: string;
  path?: string;
  query?: string;
  fragment?: string;
}

export class Uri implements vscode.Uri {
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
  readonly query: string;
  readonly fragment: string;
  private constructor({ scheme = "", authority = "", path = "", query = "", fragment = "" }: Parts) {
    this.scheme = scheme;
    this.authority = authority;
    this.path = path;
    this.query = query;
    this.fragment = fragment;
  }
  static parse(text: string): Uri {
    const [, scheme = "", authority = "", path = "", query = "", fragment = ""] =
      /^([\w.+-]+):(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(text) ?? [];
    return new Uri({ scheme, authority, path, query, fragment });
  }
  static file(path: string): Uri {
    return new Uri({ scheme: "file", path });
  }
  static from(parts: Parts & { scheme: string }): Uri {
    return new Uri(parts);
  }
  static joinPath(base: Uri, ...names: string[]): Uri {
    return base.with({ path: [base.path, ...names].join("/").replace(/\/+/g, "/") });
  }
  get fsPath(): string {
    return this.path;
  }
  with(change: Parts): Uri {
    return new Uri({ ...this, ...change });
  }
  toString(): string {
    const from = this.authority || this.scheme === "file" ? `//${this.authority}` : "";
    const rest = `${this.query ? `?${this.query}` : ""}${this.fragment ? `#${this.fragment}` : ""}`;
    return `${this.scheme}:${from}${this.path}${rest}`;
  }
  toJSON(): string {
    return this.toString();
  }
}

export class Position implements Like<vscode.Position> {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
}

export class Range implements Like<vscode.Range> {
  readonly start: Position;
  readonly end: Position;
  constructor(...at: [Position, Position] | [number, number, number, number]) {
    const [a, b] = at.length === 2 ? at : [new Position(at[0], at[1]), new Position(at[2], at[3])];
    this.start = a;
    this.end = b;
  }
  get isEmpty(): boolean {
    return this.start.line === this.end.line && this.start.character === this.end.character;
  }
}

export class Selection extends Range implements Like<vscode.Selection> {
  get active(): Position {
    return this.end;
  }
}

export class Location implements Like<vscode.Location> {
  constructor(
    readonly uri: vscode.Uri,
    readonly range: vscode.Range,
  ) {}
}

export class ThemeColor implements Like<vscode.ThemeColor> {
  constructor(readonly id: string) {}
}
export class ThemeIcon implements Like<vscode.ThemeIcon> {
  static readonly File = new ThemeIcon("file");
  constructor(
    readonly id: string,
    readonly color?: vscode.ThemeColor,
  ) {}
}

export class MarkdownString implements Like<vscode.MarkdownString> {
  isTrusted?: boolean | { readonly enabledCommands: readonly string[] };
  constructor(public value = "") {}
  appendMarkdown(text: string): vscode.MarkdownString {
    this.value += text;
    return this as unknown as vscode.MarkdownString;
  }
  appendText(text: string): vscode.MarkdownString {
    return this.appendMarkdown(text);
  }
  appendCodeblock(text: string, language = ""): vscode.MarkdownString {
    return this.appendMarkdown(`\n\`\`\`${language}\n${text}\n\`\`\`\n`);
  }
}

export class TreeItem implements Like<vscode.TreeItem> {
  constructor(
    readonly label: string | vscode.TreeItemLabel,
    readonly collapsibleState?: vscode.TreeItemCollapsibleState,
  ) {}
}

export class CodeAction implements Like<vscode.CodeAction> {
  constructor(readonly title: string) {}
}

export class CodeLens implements Like<vscode.CodeLens> {
  constructor(
    readonly range: vscode.Range,
    readonly command?: vscode.Command,
  ) {}
}

export class DataTransferItem implements Like<vscode.DataTransferItem> {
  constructor(readonly value: unknown) {}
}

export class TabInputTextDiff implements Like<vscode.TabInputTextDiff> {
  constructor(
    readonly original: vscode.Uri,
    readonly modified: vscode.Uri,
  ) {}
}

export const CodeActionKind = { RefactorRewrite: "refactor.rewrite", QuickFix: "quickfix" };
export enum DiagnosticSeverity {
  Error = 0,
  Warning = 1,
  Information = 2,
  Hint = 3,
}
export enum TextEditorRevealType {
  InCenterIfOutsideViewport = 2,
}
export enum OverviewRulerLane {
  Left = 1,
}
export enum ViewColumn {
  Active = -1,
}
export enum StatusBarAlignment {
  Left = 1,
  Right = 2,
}
export enum TreeItemCollapsibleState {
  None = 0,
  Collapsed = 1,
  Expanded = 2,
}
export enum QuickPickItemKind {
  Separator = -1,
  Default = 0,
}
export enum ProgressLocation {
  Notification = 15,
}
export enum SymbolKind {
  Method = 5,
  Constructor = 8,
  Function = 11,
}
export enum NotebookCellKind {
  Markup = 1,
  Code = 2,
}

// The editor as fast tests need it: what `vscode` is in them. Texts, events and answers are real, windows are not.
// A test says what a person answers (`person`) and sees what they were shown (`seen`).

import { vi } from "vitest";

type Listener<T> = (value: T) => unknown;

export class Disposable {
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

export class EventEmitter<T> {
  readonly #listeners = new Set<Listener<T>>();
  readonly event = (listener: Listener<T>): Disposable => {
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

export class CancellationTokenSource {
  readonly #event = new EventEmitter<void>();
  readonly token = { isCancellationRequested: false, onCancellationRequested: this.#event.event };
  cancel(): void {
    this.token.isCancellationRequested = true;
    this.#event.fire();
  }
  dispose(): void {}
}

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
}

export class Range {
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

export class Selection extends Range {
  get active(): Position {
    return this.end;
  }
}

export class Uri {
  private constructor(
    readonly scheme: string,
    readonly path: string,
    readonly query: string,
  ) {}
  static parse(text: string): Uri {
    const [, scheme = "", rest = ""] = /^([\w.+-]+):(.*)$/s.exec(text) ?? [];
    const [path = "", query = ""] = rest.split("?");
    return new Uri(scheme, path.replace(/^\/\/(?=\/)/, ""), query);
  }
  static file(path: string): Uri {
    return new Uri("file", path, "");
  }
  static from({ scheme, path = "", query = "" }: { scheme: string; path?: string; query?: string }): Uri {
    return new Uri(scheme, path, query);
  }
  static joinPath(base: Uri, ...names: string[]): Uri {
    return new Uri(base.scheme, [base.path, ...names].join("/").replace(/\/+/g, "/"), "");
  }
  get fsPath(): string {
    return this.path;
  }
  toString(): string {
    return `${this.scheme}:${this.scheme === "file" ? "//" : ""}${this.path}${this.query ? `?${this.query}` : ""}`;
  }
}

export class ThemeColor {}
export class ThemeIcon {}
export class MarkdownString {}
export class LanguageModelError extends Error {}
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
export class TabInputTextDiff {}
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

/** What was shown to the person and done to the editor, in order. */
export const seen = {
  messages: [] as string[],
  status: [] as string[],
  opened: [] as string[],
  commands: [] as { name: string; args: unknown[] }[],
  terminals: [] as { text: string; run: boolean }[],
  context: new Map<string, unknown>(),
};

/** What the person does when they are asked: the label of a button, or nothing. */
export const person: { picks: (words: string) => string | undefined } = { picks: () => undefined };

/** The pages that were opened beside the texts. */
export const webviews: { html: string; press(message: unknown): void; close(): void }[] = [];

function createWebviewPanel() {
  const received = new EventEmitter<unknown>();
  const gone = new EventEmitter<void>();
  const webview = { html: "", onDidReceiveMessage: received.event };
  webviews.push({
    get html() {
      return webview.html;
    },
    press: (message) => received.fire(message),
    close: () => gone.fire(),
  });
  return { webview, onDidDispose: gone.event, reveal: () => undefined };
}

const createTerminal = () => ({
  show: () => undefined,
  sendText: (text: string, run = true) => void seen.terminals.push({ text, run }),
});

/** The open input box, as the person has it before them. */
export interface Box {
  title: string;
  placeholder: string;
  value: string;
  /** A key after the other, as fast as can be. */
  type(text: string): void;
  enter(): void;
  escape(): void;
}
export let box: Box | undefined;

export function reset(): void {
  for (const list of [seen.messages, seen.status, seen.opened, seen.commands, seen.terminals]) list.length = 0;
  seen.context.clear();
  person.picks = () => undefined;
  window.activeTextEditor = undefined;
  workspace.isTrusted = true;
  box = undefined;
}

const message = async (words: string, ...rest: unknown[]): Promise<string | undefined> => {
  seen.messages.push(words);
  const picked = person.picks(words);
  return rest.includes(picked) ? picked : undefined;
};

function createInputBox() {
  const changed = new EventEmitter<string>();
  const accepted = new EventEmitter<void>();
  const hidden = new EventEmitter<void>();
  const input = {
    title: "",
    placeholder: "",
    value: "",
    ignoreFocusOut: false,
    onDidChangeValue: changed.event,
    onDidAccept: accepted.event,
    onDidHide: hidden.event,
    show: () => {
      box = made;
    },
    hide: () => {
      box = undefined;
      hidden.fire();
    },
    dispose: () => undefined,
  };
  const made: Box = {
    get title() {
      return input.title;
    },
    get placeholder() {
      return input.placeholder;
    },
    get value() {
      return input.value;
    },
    type: (text) => {
      for (const key of text) {
        input.value += key;
        changed.fire(input.value);
      }
    },
    enter: () => accepted.fire(),
    escape: () => input.hide(),
  };
  return input;
}

const never = new EventEmitter<never>();

export const window = {
  activeTextEditor: undefined as unknown,
  visibleTextEditors: [] as unknown[],
  tabGroups: { all: [], activeTabGroup: {}, onDidChangeTabs: never.event },
  showInformationMessage: message,
  showWarningMessage: message,
  showErrorMessage: message,
  showQuickPick: async () => undefined,
  setStatusBarMessage: (words: string) => void seen.status.push(words),
  createInputBox,
  createWebviewPanel,
  createTerminal,
  createTextEditorDecorationType: () => new Disposable(() => undefined),
  createStatusBarItem: () => ({ show: () => undefined, hide: () => undefined, dispose: () => undefined }),
  onDidChangeActiveTextEditor: never.event,
  showTextDocument: async () => undefined,
};

const commandTable = new Map<string, (...args: unknown[]) => unknown>();

export const commands = {
  registerCommand: (name: string, run: (...args: unknown[]) => unknown) => {
    commandTable.set(name, run);
    return new Disposable(() => commandTable.delete(name));
  },
  executeCommand: async (name: string, ...args: unknown[]) => {
    seen.commands.push({ name, args });
    if (name === "setContext") seen.context.set(String(args[0]), args[1]);
    return commandTable.get(name)?.(...args);
  },
};

export const version = "1.104.0";

export const workspace = {
  isTrusted: true,
  workspaceFolders: [{ name: "project", index: 0, uri: Uri.file("/project") }],
  textDocuments: [] as unknown[],
  notebookDocuments: [] as unknown[],
  asRelativePath: (uri: Uri) => uri.path.replace(/^\/project\//, ""),
  getWorkspaceFolder: (uri: Uri) => (uri.path.startsWith("/project/") ? workspace.workspaceFolders[0] : undefined),
  getConfiguration: () => ({ get: () => undefined, inspect: () => undefined }),
  onDidChangeTextDocument: never.event,
  fs: { stat: vi.fn(async () => ({})) },
};

export const languages = {
  getDiagnostics: () => [],
  registerCodeActionsProvider: () => new Disposable(() => undefined),
};
export const env = {
  language: "en",
  openExternal: async (uri: Uri) => seen.opened.push(uri.toString()) > 0,
  clipboard: { writeText: async () => undefined },
};
export const l10n = {
  bundle: undefined,
  t: (text: string, ...values: (string | number)[]) =>
    text.replace(/\{(\d+)\}/g, (whole, index: string) => String(values[Number(index)] ?? whole)),
};
export const extensions = { getExtension: () => undefined };

/** A text editor that shows a file of the workspace. */
export function editorOf(name: string, text: string) {
  const lines = text.split("\n");
  const uri = Uri.file(`/project/${name}`);
  const lineAt = (n: number) => ({ text: lines[n] ?? "", range: new Range(n, 0, n, (lines[n] ?? "").length) });
  const document = { uri, isClosed: false, lineCount: lines.length, lineAt, getText: () => text };
  return {
    document,
    selection: new Selection(0, 0, 0, 0),
    setDecorations: () => undefined,
    revealRange: () => undefined,
  };
}

/** A memory that an extension keeps. */
export function memento() {
  const kept = new Map<string, unknown>();
  return {
    get: <T>(key: string) => kept.get(key) as T | undefined,
    update: async (key: string, value: unknown) => void kept.set(key, value),
    keys: () => [...kept.keys()],
  };
}

// The editor's window in fast tests: messages, lists, boxes, pages, trees, as a person would see them.

import type * as vscode from "vscode";
import type { Like } from "./like";
import { person, seen } from "./person";
import { Disposable, EventEmitter } from "./values";

/** The pages that were opened beside the texts. */
export const webviews: { html: string; sent: unknown[]; press(message: unknown): void; close(): void }[] = [];
/** The trees of the side bar, by the ids of their views; `look`: the person brings one into sight, or out of it. */
export const trees = new Map<string, { provider: vscode.TreeDataProvider<unknown>; look(visible?: boolean): void }>();
/** Who draws the panel. */
export const views = new Map<string, vscode.WebviewViewProvider>();
/** What the extension's log holds. */
export const logged: string[] = [];

/** The open input box, as the person has it before them. */
interface Box {
  title: string;
  placeholder: string;
  value: string;
  /** A key after the other, as fast as can be. */
  type(text: string): void;
  enter(): void;
  escape(): void;
}
export let box: Box | undefined;
export const closeBox = (): void => {
  box = undefined;
};

const nothing = () => undefined;
const disposable = () => new Disposable(nothing);

const message = async (words: string, ...rest: unknown[]): Promise<undefined> => {
  seen.messages.push(words);
  const picked = person.picks(words);
  return (rest.includes(picked) ? picked : undefined) as undefined;
};

const labelOf = (item: string | vscode.QuickPickItem): string => (typeof item === "string" ? item : item.label);

async function showQuickPick<T extends vscode.QuickPickItem>(items: readonly T[] | Thenable<readonly T[]>) {
  const list = await items;
  seen.lists.push(list.map(labelOf));
  const chosen = person.chooses(list.map(labelOf));
  return (chosen === undefined ? undefined : list[chosen]) as undefined;
}

function createWebviewPanel() {
  const received = new EventEmitter<unknown>();
  const gone = new EventEmitter<void>();
  const sent: unknown[] = [];
  const postMessage = async (message: unknown) => sent.push(message) > 0;
  const webview = { html: "", onDidReceiveMessage: received.event, postMessage };
  webviews.push({
    get html() {
      return webview.html;
    },
    sent,
    press: (pressed) => received.fire(pressed),
    close: () => gone.fire(),
  });
  return { webview, onDidDispose: gone.event, reveal: nothing };
}

const createTerminal = () => ({
  show: nothing,
  sendText: (text: string, run = true) => void seen.terminals.push({ text, run }),
});

function createInputBox() {
  const [changed, accepted, hidden] = [new EventEmitter<string>(), new EventEmitter<void>(), new EventEmitter<void>()];
  const input = {
    ...{ title: "", placeholder: "", value: "", ignoreFocusOut: false },
    ...{ onDidChangeValue: changed.event, onDidAccept: accepted.event, onDidHide: hidden.event },
    show: () => {
      box = made;
    },
    hide: () => {
      box = undefined;
      hidden.fire();
    },
    dispose: nothing,
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

function createTreeView(id: string, { treeDataProvider }: vscode.TreeViewOptions<unknown>) {
  const visible = new EventEmitter<vscode.TreeViewVisibilityChangeEvent>();
  trees.set(id, { provider: treeDataProvider, look: (now = true) => visible.fire({ visible: now }) });
  return {
    ...{ selection: [] as readonly unknown[], description: "", message: "", badge: undefined },
    ...{ onDidChangeVisibility: visible.event, dispose: nothing },
    reveal: async (node: unknown) => void seen.revealed.push(treeDataProvider.getTreeItem(node)),
  };
}

function createOutputChannel() {
  const write = (line: string | Error) => void logged.push(String(line));
  return { info: write, warn: write, error: write, show: nothing, dispose: nothing };
}

function registerWebviewViewProvider(id: string, provider: vscode.WebviewViewProvider) {
  views.set(id, provider);
  return new Disposable(() => views.delete(id));
}

function createQuickPick() {
  const [changed, accepted, hidden] = [new EventEmitter<string>(), new EventEmitter<void>(), new EventEmitter<void>()];
  return {
    ...{ items: [], selectedItems: [], busy: false, onDidChangeValue: changed.event, onDidAccept: accepted.event },
    ...{ onDidHide: hidden.event, show: nothing, hide: nothing, dispose: nothing },
  };
}

/** Events of the window, for tests to fire. */
export const windowEvents = {
  activeEditor: new EventEmitter<vscode.TextEditor | undefined>(),
  terminalStart: new EventEmitter<vscode.TerminalShellExecutionStartEvent>(),
  terminalEnd: new EventEmitter<vscode.TerminalShellExecutionEndEvent>(),
};

export const window = {
  activeTextEditor: undefined as vscode.TextEditor | undefined,
  visibleTextEditors: [] as readonly vscode.TextEditor[],
  tabGroups: { all: [], activeTabGroup: {}, onDidChangeTabs: new EventEmitter<vscode.TabChangeEvent>().event },
  showInformationMessage: message,
  showWarningMessage: message,
  showErrorMessage: message,
  showQuickPick,
  showInputBox: async (options?: vscode.InputBoxOptions) => person.writes(options?.title ?? ""),
  showOpenDialog: async () => undefined,
  showTextDocument: async (document: vscode.TextDocument | vscode.Uri): Promise<undefined> =>
    void seen.opened.push(String("uri" in document ? document.uri : document)),
  setStatusBarMessage: (words: string) => {
    seen.status.push(words);
    return disposable();
  },
  withProgress: async (_: vscode.ProgressOptions, task: (progress: never, token: never) => unknown) =>
    (await task(undefined as never, undefined as never)) as undefined,
  ...{ createInputBox, createQuickPick, createWebviewPanel, createTerminal, createTreeView, createOutputChannel },
  createTextEditorDecorationType: disposable,
  createStatusBarItem: () => ({ show: nothing, hide: nothing, dispose: nothing }),
  registerWebviewViewProvider,
  onDidChangeActiveTextEditor: windowEvents.activeEditor.event,
  onDidChangeVisibleTextEditors: new EventEmitter<readonly vscode.TextEditor[]>().event,
  onDidChangeTextEditorSelection: new EventEmitter<vscode.TextEditorSelectionChangeEvent>().event,
  onDidStartTerminalShellExecution: windowEvents.terminalStart.event,
  onDidEndTerminalShellExecution: windowEvents.terminalEnd.event,
} satisfies Like<typeof vscode.window>;

// The fake editor as a test has it: set back before each test, with a text in it, or given to an extension.

import type * as vscode from "vscode";
import type { Context } from "./like";
import { resetPerson } from "./person";
import { EventEmitter, Range, Selection, Uri } from "./values";
import { closeBox, logged, trees, views, webviews, window } from "./window";
import { resetWorkspace, workspace } from "./workspace";

export { person, seen } from "./person";
export { EventEmitter, Uri } from "./values";
export { openView } from "./view";
export { box, logged, trees, views, webviews, window } from "./window";
export { commands, configure, files, registered, workspace, workspaceEvents } from "./workspace";

/** As after a start: nothing shown, nothing set, a folder that is trusted. */
export function reset(): void {
  resetPerson();
  resetWorkspace();
  closeBox();
  for (const page of webviews.splice(0)) page.close();
  logged.length = 0;
  trees.clear();
  views.clear();
  window.activeTextEditor = undefined;
  window.visibleTextEditors = [];
}

/** What waits for the event loop has been done. */
export const settle = (ms = 5): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A text editor that shows a file of the workspace. */
export function editorOf(name: string, text: string): vscode.TextEditor {
  const lines = text.split("\n");
  const uri = Uri.file(`/project/${name}`);
  const lineAt = (n: number) => ({ text: lines[n] ?? "", range: new Range(n, 0, n, (lines[n] ?? "").length) });
  const document = { uri, isClosed: false, lineCount: lines.length, lineAt, getText: () => text };
  return {
    document,
    selection: new Selection(0, 0, 0, 0),
    setDecorations: () => undefined,
    revealRange: () => undefined,
  } as unknown as vscode.TextEditor;
}

/** A memory that an extension keeps. */
export function memento(): vscode.Memento {
  const kept = new Map<string, unknown>();
  return {
    get: <T>(key: string, other?: T) => (kept.has(key) ? (kept.get(key) as T) : (other as T)),
    update: async (key: string, value: unknown) => void kept.set(key, value),
    keys: () => [...kept.keys()],
  };
}

/** A store of secrets; a change is told. */
export function secretStore(): vscode.SecretStorage {
  const kept = new Map<string, string>();
  const changed = new EventEmitter<vscode.SecretStorageChangeEvent>();
  return {
    get: async (key) => kept.get(key),
    store: async (key, value) => {
      kept.set(key, value);
      changed.fire({ key });
    },
    delete: async (key) => {
      kept.delete(key);
      changed.fire({ key });
    },
    onDidChange: changed.event,
  };
}

/** A log that nobody reads. */
export const quietLog: Pick<vscode.LogOutputChannel, "info" | "warn" | "error" | "show"> = {
  ...{ info: () => undefined, warn: () => undefined, error: () => undefined, show: () => undefined },
};

/** What an extension is activated with; `folder`: where it may write. */
export function contextOf(folder: string): vscode.ExtensionContext {
  const context: Context = {
    subscriptions: [],
    ...{ workspaceState: memento() as Context["workspaceState"], secrets: secretStore() },
    globalState: { ...memento(), setKeysForSync: () => undefined },
    ...{ extensionUri: Uri.file("/extension"), globalStorageUri: Uri.file(folder), logUri: Uri.file(folder) },
  };
  return context as vscode.ExtensionContext;
}

/** Whether the window has trust in its folder. */
export const trust = (trusted: boolean): void => {
  workspace.isTrusted = trusted;
};

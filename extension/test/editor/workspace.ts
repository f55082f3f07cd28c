// The editor's workspace in fast tests: files, settings, trust, commands, and what the machine lends.

import type * as vscode from "vscode";
import { read } from "../lab/strings";
import type { Like } from "./like";
import { seen } from "./person";
import { Disposable, EventEmitter, Uri } from "./values";

/** Events of the workspace, for tests to fire. */
export const workspaceEvents = {
  settings: new EventEmitter<vscode.ConfigurationChangeEvent>(),
  trust: new EventEmitter<void>(),
  texts: new EventEmitter<vscode.TextDocumentChangeEvent>(),
};

type Layer = "globalValue" | "workspaceValue";
const settings = new Map<string, Partial<Record<Layer, unknown>>>();

/** A setting by its whole name, as the person or the workspace sets it; tells who watches. */
export function configure(name: string, value: unknown, layer: Layer = "globalValue"): void {
  settings.set(name, { ...settings.get(name), [layer]: value });
  workspaceEvents.settings.fire({ affectsConfiguration: (section) => `${name}.`.startsWith(`${section}.`) });
}

function getConfiguration(section?: string) {
  const nameOf = (key: string) => (section ? `${section}.${key}` : key);
  return {
    get: (key: string): undefined => {
      const layers = settings.get(nameOf(key));
      return (layers?.workspaceValue ?? layers?.globalValue) as undefined;
    },
    inspect: (key: string) => ({ key, ...settings.get(nameOf(key)) }) as unknown as undefined,
    // The real editor writes a file first: whoever reads the setting meanwhile finds the old value.
    update: async (key: string, value: unknown, everywhere?: boolean | vscode.ConfigurationTarget | null) => {
      await new Promise(setImmediate);
      configure(nameOf(key), value, everywhere ? "globalValue" : "workspaceValue");
    },
  };
}

/** Files of the workspace that exist, by their paths; all of them where none are named. */
export const files = new Set<string>();
const folders: readonly vscode.WorkspaceFolder[] = [{ name: "project", index: 0, uri: Uri.file("/project") }];

export const workspace = {
  isTrusted: true as boolean,
  workspaceFolders: folders as readonly vscode.WorkspaceFolder[] | undefined,
  textDocuments: [] as readonly vscode.TextDocument[],
  notebookDocuments: [] as readonly vscode.NotebookDocument[],
  asRelativePath: (uri: vscode.Uri | string) => (typeof uri === "string" ? uri : uri.path).replace(/^\/project\//, ""),
  getWorkspaceFolder: (uri: vscode.Uri) => (uri.path.startsWith("/project/") ? folders[0] : undefined),
  getConfiguration,
  findFiles: async () => [],
  applyEdit: async () => true,
  openTextDocument: async (options?: unknown): Promise<undefined> =>
    ({ uri: Uri.from({ scheme: "untitled" }), getText: () => "", ...(options as object) }) as unknown as undefined,
  registerTextDocumentContentProvider: () => new Disposable(() => undefined),
  onDidChangeTextDocument: workspaceEvents.texts.event,
  onDidOpenTextDocument: new EventEmitter<vscode.TextDocument>().event,
  onDidCloseTextDocument: new EventEmitter<vscode.TextDocument>().event,
  onDidChangeConfiguration: workspaceEvents.settings.event,
  onDidGrantWorkspaceTrust: workspaceEvents.trust.event,
  fs: {
    stat: async (uri: vscode.Uri) => {
      if (files.size > 0 && !files.has(uri.path)) throw new Error(`no ${uri.path}`);
      return {};
    },
  },
} satisfies Like<typeof vscode.workspace>;

const table = new Map<string, (...args: unknown[]) => unknown>();

export const commands = {
  registerCommand: (name: string, run: (...args: never[]) => unknown) => {
    table.set(name, run as (...args: unknown[]) => unknown);
    return new Disposable(() => table.delete(name));
  },
  executeCommand: async (name: string, ...args: unknown[]): Promise<unknown> => {
    seen.commands.push({ name, args });
    if (name === "setContext") seen.context.set(String(args[0]), args[1]);
    return table.get(name)?.(...args);
  },
};
commands satisfies Like<Pick<typeof vscode.commands, "registerCommand">>;

/** The ids of the commands that are registered. */
export const registered = (): string[] => [...table.keys()];

export const languages = {
  getDiagnostics: () => [] as [vscode.Uri, vscode.Diagnostic[]][],
  getLanguages: async () => ["markdown", "json"],
  onDidChangeDiagnostics: new EventEmitter<vscode.DiagnosticChangeEvent>().event,
  registerCodeActionsProvider: () => new Disposable(() => undefined),
  registerCodeLensProvider: () => new Disposable(() => undefined),
};
languages satisfies Like<Omit<typeof vscode.languages, "getDiagnostics">> & { getDiagnostics: unknown };

export const env = {
  language: "en",
  openExternal: async (uri: vscode.Uri) => seen.opened.push(uri.toString()) > 0,
  clipboard: { writeText: async (text: string) => void seen.copied.push(text) },
} satisfies Like<typeof vscode.env>;

export const l10n = {
  bundle: undefined,
  t: (text: string, ...values: (string | number)[]) =>
    text.replace(/\{(\d+)\}/g, (whole, index: string) => String(values[Number(index)] ?? whole)),
};

export const extensions = {
  getExtension: (id: string) => (id === "daiku.daiku" ? ({ packageJSON: read("package.json") } as never) : undefined),
} satisfies Like<typeof vscode.extensions>;
export const lm = { selectChatModels: async () => [] } satisfies Like<typeof vscode.lm>;
export const version = "1.104.0";

export function resetWorkspace(): void {
  settings.clear();
  files.clear();
  table.clear();
  workspace.isTrusted = true;
}

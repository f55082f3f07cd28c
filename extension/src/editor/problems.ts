// Waits until the editor's diagnostics are up to date with the current texts, with a time limit.

import * as vscode from "vscode";

/** So long after the last word about a text it is taken for the whole. */
const QUIET_MS = 200;
/** Silence after a change means "nothing new" after this, where something has spoken of this language before … */
const SILENT_MS = 1500;
/** … and after this where nothing has: perhaps nobody looks at it. */
const UNKNOWN_MS = 500;
const MOST_MS = 5000;

interface Times {
  changed: number;
  reported: number;
}

/** Follows texts and problems; one a window. */
export class Problems implements vscode.Disposable {
  readonly #times = new Map<string, Times>();
  readonly #reporting = new Set<string>();
  readonly #event = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable[];

  constructor() {
    const { workspace, languages } = vscode;
    for (const [uri, found] of languages.getDiagnostics()) if (found.length > 0) this.#markReported(uri);
    this.#subscriptions = [
      this.#event,
      workspace.onDidOpenTextDocument((document) => this.#markChanged(document)),
      workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0) this.#markChanged(document);
      }),
      workspace.onDidCloseTextDocument((document) => this.#times.delete(document.uri.toString())),
      languages.onDidChangeDiagnostics(({ uris }) => {
        for (const uri of uris) this.#markReported(uri);
        this.#event.fire();
      }),
    ];
  }

  dispose(): void {
    for (const one of this.#subscriptions) one.dispose();
  }

  #markChanged(document: vscode.TextDocument): void {
    const key = document.uri.toString();
    this.#times.set(key, { changed: Date.now(), reported: this.#times.get(key)?.reported ?? 0 });
  }

  #markReported(uri: vscode.Uri): void {
    const key = uri.toString();
    const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === key);
    if (document) this.#reporting.add(document.languageId);
    const seen = this.#times.get(key);
    if (seen) seen.reported = Date.now();
  }

  /** Waits until the problems of these documents are about their texts, or nothing more is to be expected. */
  async settled(documents: readonly vscode.TextDocument[]): Promise<void> {
    const end = Date.now() + MOST_MS;
    for (;;) {
      const until = Math.min(end, Math.max(0, ...documents.map((document) => this.#settledAt(document))));
      const left = until - Date.now();
      if (left <= 0) return;
      await this.#wait(left);
    }
  }

  /** When the problems of a document will have settled, as far as can be told now. */
  #settledAt(document: vscode.TextDocument): number {
    const seen = this.#times.get(document.uri.toString());
    if (!seen) return 0;
    if (seen.reported >= seen.changed) return seen.reported + QUIET_MS;
    return seen.changed + (this.#reporting.has(document.languageId) ? SILENT_MS : UNKNOWN_MS);
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        heard.dispose();
        resolve();
      };
      const timer = setTimeout(done, ms);
      const heard = this.#event.event(done);
    });
  }
}

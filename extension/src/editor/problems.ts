// Waiting for the editor's problems: until they are about the present texts, by its events, never longer than needed.

import * as vscode from "vscode";

/** So long after the last word about a text it is taken for the whole. */
const QUIET_MS = 200;
/** Silence after a change means "nothing new" after this, where something has spoken of this language before … */
const SILENT_MS = 1500;
/** … and after this where nothing has: perhaps nobody looks at it. */
const UNKNOWN_MS = 500;
const MOST_MS = 5000;

interface Seen {
  changed: number;
  told: number;
}

/** Follows texts and problems; one a window. */
export class Problems implements vscode.Disposable {
  readonly #seen = new Map<string, Seen>();
  readonly #speaking = new Set<string>();
  readonly #event = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable[];

  constructor() {
    const { workspace, languages } = vscode;
    for (const [uri, found] of languages.getDiagnostics()) if (found.length > 0) this.#heard(uri);
    this.#subscriptions = [
      this.#event,
      workspace.onDidOpenTextDocument((document) => this.#touched(document)),
      workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0) this.#touched(document);
      }),
      workspace.onDidCloseTextDocument((document) => this.#seen.delete(document.uri.toString())),
      languages.onDidChangeDiagnostics(({ uris }) => {
        for (const uri of uris) this.#heard(uri);
        this.#event.fire();
      }),
    ];
  }

  dispose(): void {
    for (const one of this.#subscriptions) one.dispose();
  }

  #touched(document: vscode.TextDocument): void {
    const key = document.uri.toString();
    this.#seen.set(key, { changed: Date.now(), told: this.#seen.get(key)?.told ?? 0 });
  }

  #heard(uri: vscode.Uri): void {
    const key = uri.toString();
    const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === key);
    if (document) this.#speaking.add(document.languageId);
    const seen = this.#seen.get(key);
    if (seen) seen.told = Date.now();
  }

  /** Waits until the problems of these documents are about their texts, or nothing more is to be expected. */
  async settled(documents: readonly vscode.TextDocument[]): Promise<void> {
    const end = Date.now() + MOST_MS;
    for (;;) {
      const until = Math.min(end, Math.max(0, ...documents.map((document) => this.#expected(document))));
      const left = until - Date.now();
      if (left <= 0) return;
      await this.#wait(left);
    }
  }

  /** When the problems of a document will have settled, as far as can be told now. */
  #expected(document: vscode.TextDocument): number {
    const seen = this.#seen.get(document.uri.toString());
    if (!seen) return 0;
    if (seen.told >= seen.changed) return seen.told + QUIET_MS;
    return seen.changed + (this.#speaking.has(document.languageId) ? SILENT_MS : UNKNOWN_MS);
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

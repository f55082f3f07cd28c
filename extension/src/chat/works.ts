// The requests under way in this window, each with the conversation that it streams into.

import * as vscode from "vscode";

/** One request that streams a run into this window. */
export interface Work {
  /** Known from its first chunk where the request begins a conversation. */
  session: string | undefined;
  /** The run that the person started; known from its first chunk. */
  run: string | undefined;
  readonly cancel: vscode.CancellationTokenSource;
  /** It has a conversation of its own, beside the one that is open. */
  readonly ownChat: boolean;
}

export class Works {
  readonly #all = new Set<Work>();

  get any(): boolean {
    return this.#all.size > 0;
  }

  has(work: Work): boolean {
    return this.#all.has(work);
  }

  /** The one of a conversation; `undefined` means the new chat that is open, which has no id yet. */
  of(session: string | undefined): Work | undefined {
    return [...this.#all].find((work) => work.session === session && !(work.ownChat && session === undefined));
  }

  begin(session: string | undefined, ownChat: boolean): Work {
    const work = { session, run: undefined, cancel: new vscode.CancellationTokenSource(), ownChat };
    this.#all.add(work);
    return work;
  }

  end(work: Work): void {
    this.#all.delete(work);
    work.cancel.dispose();
  }
}

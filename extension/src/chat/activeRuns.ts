// The requests of this window that stream a run now, each with the conversation that it belongs to.

import * as vscode from "vscode";

/** One request that streams a run into this window. */
export interface ActiveRun {
  /** Known from its first chunk where the request begins a conversation. */
  session: string | undefined;
  /** The run that the person started; known from its first chunk. */
  runId: string | undefined;
  readonly cancel: vscode.CancellationTokenSource;
  /** It has a conversation of its own, beside the one that is open. */
  readonly ownChat: boolean;
}

/** The set of runs that stream into this window now. */
export class ActiveRuns {
  readonly #all = new Set<ActiveRun>();

  get any(): boolean {
    return this.#all.size > 0;
  }

  has(run: ActiveRun): boolean {
    return this.#all.has(run);
  }

  /** The one of a conversation; `undefined` means the new chat that is open, which has no id yet. */
  of(session: string | undefined): ActiveRun | undefined {
    return [...this.#all].find((run) => run.session === session && !(run.ownChat && session === undefined));
  }

  begin(session: string | undefined, ownChat: boolean): ActiveRun {
    const run = { session, runId: undefined, cancel: new vscode.CancellationTokenSource(), ownChat };
    this.#all.add(run);
    return run;
  }

  end(run: ActiveRun): void {
    this.#all.delete(run);
    run.cancel.dispose();
  }
}

// Keeps a view as new as the server says, for as long as somebody looks at it: each question is answered when there is news.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { Server } from "../server/server";

export type Served = Pick<Server, "running" | "onState">;

/** One question to the server, and what is drawn of its answer; nothing once the token is cancelled. */
type Ask = (client: LanguageClient, token: vscode.CancellationToken) => Promise<void>;

export class WatchedView implements vscode.Disposable {
  readonly #server: Served;
  readonly #ask: Ask;
  readonly #failed: (error: unknown) => void;
  readonly #followed: vscode.Disposable;
  #asking: vscode.CancellationTokenSource | undefined;
  #seen = false;

  constructor(view: vscode.TreeView<unknown>, server: Served, ask: Ask, failed: (error: unknown) => void) {
    this.#server = server;
    this.#ask = ask;
    this.#failed = failed;
    this.#followed = vscode.Disposable.from(
      server.onState(({ phase }) => phase === "ready" && this.#seen && void this.follow()),
      view.onDidChangeVisibility(({ visible }) => {
        this.#seen = visible;
        if (visible) void this.follow();
        else this.#asking?.cancel();
      }),
    );
  }

  /** Whether somebody looks at the view. */
  get seen() {
    return this.#seen;
  }

  /** Asks so many times, or until nobody looks any more. A view alone starts no server. */
  async follow(times = Number.POSITIVE_INFINITY): Promise<void> {
    this.#asking?.cancel();
    const asking = new vscode.CancellationTokenSource();
    this.#asking = asking;
    try {
      for (let n = 0; n < times; n++) {
        const client = this.#server.running();
        if (!client || asking.token.isCancellationRequested) return;
        await this.#ask(client, asking.token);
      }
    } catch (error) {
      if (!asking.token.isCancellationRequested) this.#failed(error);
    } finally {
      asking.dispose();
    }
  }

  dispose() {
    this.#asking?.cancel();
    this.#followed.dispose();
  }
}

// Start runs that stream into this window, route their chunks, stop and steer them.

import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { Chunk, RunResult } from "../contract.gen";
import type { ToPanel } from "../pure/chat/panel";
import { errorText, failureOf, onChunks, request } from "../server/rpc";
import type { Server } from "../server/server";
import type { ActiveRun, ActiveRuns } from "./activeRuns";
import type { Conversations } from "./conversations";
import type { OpenChat } from "./openChat";

/** A run that does not stop within this time has its request cancelled too. */
const STOP_MS = 3000;
const ABOUT_FILES = new Set<Chunk["type"]>(["edit", "review", "restored"]);

/** Sends the request that streams the run; `token` is where its chunks come. */
type Send = (client: LanguageClient, token: string, cancel: vscode.CancellationToken) => Promise<RunResult>;

interface StartOptions {
  /** Goes back into the composer if the run never begins. */
  text?: string;
  /** In a conversation of its own, beside the open one; what goes wrong is thrown. */
  ownChat?: boolean;
}

interface Needs {
  server: Pick<Server, "client" | "running">;
  log: Pick<vscode.LogOutputChannel, "warn" | "error">;
  post: (message: ToPanel) => void;
  activeRuns: ActiveRuns;
  conversations: Conversations;
  open: OpenChat;
}

/** Starts, stops and steers runs; routes their chunks by session. */
export class Runs {
  /** Files were changed, decided on or brought back. */
  readonly onFiles = new vscode.EventEmitter<void>();
  readonly #needs: Needs;

  constructor(needs: Needs) {
    this.#needs = needs;
  }

  /** Answers when the run has ended; `undefined` when it was cancelled or has failed. */
  async start(session: string | undefined, send: Send, options: StartOptions = {}): Promise<RunResult | undefined> {
    const { server, activeRuns, open } = this.#needs;
    const run = activeRuns.begin(session, options.ownChat ?? false);
    open.tellWorking();
    let listening: vscode.Disposable | undefined;
    try {
      const client = await server.client();
      const token = randomUUID();
      listening = onChunks(client, token, (chunk) => this.#receive(run, chunk));
      const result = await send(client, token, run.cancel.token);
      await this.refresh(result.sessionId);
      return result;
    } catch (error) {
      this.#fail(error, run, options.text);
      return undefined;
    } finally {
      listening?.dispose();
      activeRuns.end(run);
      open.flush();
      open.tellWorking();
    }
  }

  /** Fetches what came to a conversation outside of a run that streams into this window. */
  async refresh(session: string): Promise<void> {
    await this.#needs.conversations.refresh(session);
    this.#needs.open.flush();
  }

  /** Stops the run of the open conversation. */
  async stop(): Promise<void> {
    const { server, activeRuns, open, log } = this.#needs;
    const run = open.activeRun;
    const client = server.running();
    if (!run) return;
    const late = setTimeout(() => run.cancel.cancel(), STOP_MS);
    try {
      if (run.runId && client) await request(client, "daiku/cancel", { runId: run.runId });
      else run.cancel.cancel();
    } catch (error) {
      log.warn(`stop: ${errorText(error)}`);
      if (activeRuns.has(run)) run.cancel.cancel();
    } finally {
      clearTimeout(late);
    }
  }

  /** Says something to the run of the open conversation while it works. */
  async steer(text: string): Promise<void> {
    const runId = this.#needs.open.activeRun?.runId;
    const client = this.#needs.server.running();
    if (runId && client) await request(client, "daiku/steer", { runId, text });
  }

  #receive(run: ActiveRun, chunk: Chunk): void {
    const { conversations, open } = this.#needs;
    if (chunk.type === "run_started" && !chunk.parent) run.runId = chunk.run;
    if (!run.session) {
      run.session = chunk.session;
      if (run.ownChat || !open.session) conversations.begin(chunk.session);
      if (!run.ownChat && !open.session) {
        open.choose(chunk.session);
        open.show();
      }
    }
    if (ABOUT_FILES.has(chunk.type)) this.onFiles.fire();
    conversations.receive(chunk);
  }

  #fail(error: unknown, run: ActiveRun, text: string | undefined): void {
    const { log, open, post } = this.#needs;
    const failure = failureOf(error);
    if (!failure) return;
    log.error(`${failure.message} ${errorText(error)}`);
    if (run.ownChat) throw error;
    const unsent = run.runId === undefined && text ? { text } : {};
    if (run.session === open.session || !open.session) post({ type: "failed", ...failure, ...unsent });
  }
}

// Starts the runs that stream into this window, takes their chunks to where they belong, stops and steers them.

import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { Chunk, RunResult } from "../contract.gen";
import type { ToPanel } from "../pure/chat/panel";
import { failureOf, onChunks, raw, request } from "../server/rpc";
import type { Server } from "../server/server";
import type { Conversations } from "./conversations";
import type { OpenChat } from "./openChat";
import type { Work, Works } from "./works";

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
  works: Works;
  conversations: Conversations;
  open: OpenChat;
}

export class Runs {
  /** Files were changed, decided on or brought back. */
  readonly onFiles = new vscode.EventEmitter<void>();
  readonly #needs: Needs;

  constructor(needs: Needs) {
    this.#needs = needs;
  }

  /** Answers when the run has ended; `undefined` when it was cancelled or has failed. */
  async start(session: string | undefined, send: Send, options: StartOptions = {}): Promise<RunResult | undefined> {
    const { server, works, open } = this.#needs;
    const work = works.begin(session, options.ownChat ?? false);
    open.tellWorking();
    let listening: vscode.Disposable | undefined;
    try {
      const client = await server.client();
      const token = randomUUID();
      listening = onChunks(client, token, (chunk) => this.#receive(work, chunk));
      const result = await send(client, token, work.cancel.token);
      await this.refresh(result.sessionId);
      return result;
    } catch (error) {
      this.#fail(error, work, options.text);
      return undefined;
    } finally {
      listening?.dispose();
      works.end(work);
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
    const { server, works, open, log } = this.#needs;
    const { work } = open;
    const client = server.running();
    if (!work) return;
    const late = setTimeout(() => work.cancel.cancel(), STOP_MS);
    try {
      if (work.run && client) await request(client, "daiku/cancel", { runId: work.run });
      else work.cancel.cancel();
    } catch (error) {
      log.warn(`stop: ${raw(error)}`);
      if (works.has(work)) work.cancel.cancel();
    } finally {
      clearTimeout(late);
    }
  }

  /** Says something to the run of the open conversation while it works. */
  async steer(text: string): Promise<void> {
    const run = this.#needs.open.work?.run;
    const client = this.#needs.server.running();
    if (run && client) await request(client, "daiku/steer", { runId: run, text });
  }

  #receive(work: Work, chunk: Chunk): void {
    const { conversations, open } = this.#needs;
    if (chunk.type === "run_started" && !chunk.parent) work.run = chunk.run;
    if (!work.session) {
      work.session = chunk.session;
      if (work.ownChat || !open.session) conversations.begin(chunk.session);
      if (!work.ownChat && !open.session) {
        open.choose(chunk.session);
        open.show();
      }
    }
    if (ABOUT_FILES.has(chunk.type)) this.onFiles.fire();
    conversations.receive(chunk);
  }

  #fail(error: unknown, work: Work, text: string | undefined): void {
    const { log, open, post } = this.#needs;
    const failure = failureOf(error);
    if (!failure) return;
    log.error(`${failure.message} ${raw(error)}`);
    if (work.ownChat) throw error;
    const unsent = work.run === undefined && text ? { text } : {};
    if (work.session === open.session || !open.session) post({ type: "failed", ...failure, ...unsent });
  }
}

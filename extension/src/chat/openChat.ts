// The conversation that is open: which one it is, and what the panel and the trees are told of it.

import * as vscode from "vscode";
import type { Chunk } from "../contract.gen";
import type { ToPanel } from "../pure/chat/panel";
import { type Pending, pendingApprovals } from "../pure/chat/pending";
import type { ActiveRun, ActiveRuns } from "./activeRuns";
import { type Conversation, type Conversations, sessionStub } from "./conversations";

/** Under which a window remembers it. */
export const SESSION = "daiku.session";
const CHANGES_WAITING = new Set<Chunk["type"]>(["approval_asked", "approval_given", "run_finished"]);

interface Needs {
  state: vscode.Memento;
  activeRuns: ActiveRuns;
  conversations: Conversations;
  post: (message: ToPanel) => void;
}

/** The open conversation, or the new chat that has no session yet. */
export class OpenChat {
  readonly onWorking = new vscode.EventEmitter<boolean>();
  readonly onWaiting = new vscode.EventEmitter<readonly Pending[]>();
  readonly onChunks = new vscode.EventEmitter<readonly Chunk[]>();
  readonly #needs: Needs;
  #session: string | undefined;
  #outbox: Chunk[] = [];

  constructor(needs: Needs) {
    this.#needs = needs;
    this.#session = needs.state.get<string>(SESSION);
  }

  get session(): string | undefined {
    return this.#session;
  }

  get activeRun(): ActiveRun | undefined {
    return this.#needs.activeRuns.of(this.#session);
  }

  get chunks(): readonly Chunk[] {
    return this.#conversation()?.stream.chunks ?? [];
  }

  /** A question of a run that is not under way here is not waited for. */
  get waiting(): readonly Pending[] {
    return this.activeRun ? pendingApprovals(this.chunks) : [];
  }

  /** Remembers it for the next start of the editor, too. */
  choose(session: string | undefined): void {
    this.#session = session;
    void this.#needs.state.update(SESSION, session);
  }

  /** Everything that the panel needs to draw the conversation. */
  snapshot(): ToPanel {
    const shown = this.#conversation();
    return {
      type: "session",
      session: shown?.session ?? (this.#session ? sessionStub(this.#session) : undefined),
      chunks: this.chunks,
      working: this.activeRun !== undefined,
      ...(shown?.earlier ? { earlier: shown.earlier } : {}),
    };
  }

  show(): void {
    this.#needs.post(this.snapshot());
    this.tellChunks();
  }

  /** Tells the trees and keys all of it. */
  tellChunks(): void {
    this.onChunks.fire(this.chunks);
  }

  tellWorking(): void {
    const working = this.activeRun !== undefined;
    this.#needs.post({ type: "working", session: this.#session ?? "", working });
    this.onWorking.fire(working);
    this.onWaiting.fire(this.waiting);
  }

  /** A new chunk of this conversation; those that arrive in one breath go to the panel as one message. */
  add(chunk: Chunk): void {
    if (this.#outbox.length === 0) setImmediate(() => this.flush());
    this.#outbox.push(chunk);
    if (CHANGES_WAITING.has(chunk.type)) this.onWaiting.fire(this.waiting);
  }

  /** Another conversation may have been opened since a chunk was added. */
  flush(): void {
    const chunks = this.#outbox.filter((chunk) => chunk.session === this.#session);
    this.#outbox = [];
    if (!this.#session || chunks.length === 0) return;
    this.#needs.post({ type: "chunks", session: this.#session, chunks });
    this.onChunks.fire(chunks);
  }

  #conversation(): Readonly<Conversation> | undefined {
    return this.#session ? this.#needs.conversations.of(this.#session) : undefined;
  }
}

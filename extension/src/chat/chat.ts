// The chat of this window: sends what a person says, answers what the server asks, opens and forks conversations.

import * as vscode from "vscode";
import type {
  ApproveParams,
  Chunk,
  ContextItem,
  EditGrant,
  Range,
  Requests,
  RestoreResult,
  RunResult,
  Session,
} from "../contract.gen";
import { cursorPlace } from "../editor/context";
import type { Approvals, Mode, ToPanel } from "../pure/chat/panel";
import type { Pending } from "../pure/chat/pending";
import { errorText, execute, request } from "../server/rpc";
import type { Server } from "../server/server";
import { ActiveRuns } from "./activeRuns";
import { Conversations } from "./conversations";
import { OpenChat } from "./openChat";
import { Runs } from "./runs";

export interface Chat {
  readonly current: string | undefined;
  readonly working: boolean;
  /** A run of this window is under way, in whichever conversation. */
  readonly busy: boolean;
  readonly onWorking: vscode.Event<boolean>;
  /** Something waits for the person, in the conversation that is open. */
  readonly onWaiting: vscode.Event<readonly Pending[]>;
  readonly waiting: readonly Pending[];
  /** A conversation that is not open asks the person something. */
  readonly onAskedElsewhere: vscode.Event<string>;
  /** What was said and done in the open conversation. */
  readonly chunks: readonly Chunk[];
  /** What has come to the open conversation; all of it, when another one was opened or older parts came. */
  readonly onChunks: vscode.Event<readonly Chunk[]>;
  /** Files were changed, decided on or brought back, in whichever conversation of this window. */
  readonly onFiles: vscode.Event<void>;
  /** Everything that the panel needs to draw the open conversation. */
  snapshot(): ToPanel;
  send(text: string, context: readonly ContextItem[], options?: SendOptions): Promise<RunResult | undefined>;
  /** Has the server carry out one of its commands as a run of the open conversation. */
  command(name: string, args: CommandArgs): Promise<RunResult | undefined>;
  /** Starts any other run in the open conversation. */
  start<M extends RunMethod>(method: M, params: Requests[M][0]): Promise<RunResult | undefined>;
  resume(run: string): Promise<void>;
  stop(): Promise<void>;
  steer(text: string): Promise<void>;
  approve(params: ApproveParams): Promise<void>;
  answer(run: string, inputId: string, text: string): Promise<void>;
  /** Brings back the files of a checkpoint and of all later ones. */
  undo(checkpointId: string): Promise<RestoreResult>;
  open(session: string): Promise<void>;
  /** Fetches what lies before the part of the open conversation that is here. */
  earlier(): Promise<void>;
  /** `restoreFiles`: those that were changed after it are brought back, too. */
  fork(session: string, atSeq: number, restoreFiles?: boolean): Promise<void>;
  remove(session: string): Promise<void>;
  list(query: string): Promise<readonly Session[]>;
  newChat(): void;
  /** After a start of the server: what was open is fetched again. */
  reload(): Promise<void>;
  /** Fetches what came to the open conversation outside of a run: a plan that the person changed, an undo. */
  catchUp(): Promise<void>;
}

/** Requests that start a run besides a chat. */
type RunMethod = "daiku/plan/run" | "daiku/code";

/** The argument of a server's command: what a code action hands over, or what we make of the open editor. */
export interface CommandArgs {
  text?: string;
  instruction?: string;
  /** The person may change the instruction before it is sent. */
  ask?: boolean;
  uri?: string;
  range?: Range;
  diagnostics?: readonly unknown[];
  context?: readonly ContextItem[];
  sessionId?: string;
  model?: string;
}

interface SendOptions {
  mode?: Mode;
  /** `edits`: are made at once, and looked through afterwards. */
  approvals?: Approvals;
  /** The edit that was asked for by pointing at its place. */
  grant?: EditGrant;
  /** In a conversation of its own, beside the one that is open. Throws what goes wrong. */
  ownChat?: boolean;
}

interface ChatOptions {
  server: Pick<Server, "client" | "running">;
  state: vscode.Memento;
  log: Pick<vscode.LogOutputChannel, "warn" | "error">;
  post: (message: ToPanel) => void;
  choice: () => { mode: Mode; model: string; approvals: Approvals };
}

/** The chat of this window; the conversation that was open last is open again. */
export const createChat = (options: ChatOptions): Chat => new WindowChat(options);

class WindowChat implements Chat {
  readonly #options: ChatOptions;
  readonly #activeRuns = new ActiveRuns();
  readonly #conversations: Conversations;
  readonly #open: OpenChat;
  readonly #runs: Runs;
  readonly #askedElsewhere = new vscode.EventEmitter<string>();

  constructor(options: ChatOptions) {
    this.#options = options;
    const { server, log, state, post } = options;
    const activeRuns = this.#activeRuns;
    const conversations = new Conversations({ server, log, onNew: (chunk) => this.#add(chunk) });
    const open = new OpenChat({ state, activeRuns, conversations, post });
    this.#conversations = conversations;
    this.#open = open;
    this.#runs = new Runs({ server, log, post, activeRuns, conversations, open });
  }

  get current() {
    return this.#open.session;
  }
  get working() {
    return this.#open.activeRun !== undefined;
  }
  get busy() {
    return this.#activeRuns.any;
  }
  get waiting() {
    return this.#open.waiting;
  }
  get chunks() {
    return this.#open.chunks;
  }
  get onWorking() {
    return this.#open.onWorking.event;
  }
  get onWaiting() {
    return this.#open.onWaiting.event;
  }
  get onChunks() {
    return this.#open.onChunks.event;
  }
  get onFiles() {
    return this.#runs.onFiles.event;
  }
  get onAskedElsewhere() {
    return this.#askedElsewhere.event;
  }

  snapshot(): ToPanel {
    return this.#open.snapshot();
  }

  send(text: string, context: readonly ContextItem[], options: SendOptions = {}) {
    const { ownChat = false, ...own } = options;
    const session = ownChat ? undefined : this.current;
    const { mode, model, approvals, grant } = { grant: undefined, ...this.#options.choice(), ...own };
    const params = {
      text,
      context: [...context],
      mode: vscode.workspace.isTrusted ? mode : ("ask" as const),
      approvals,
      ...(model ? { model } : {}),
      ...(grant ? { grant } : {}),
      ...cursorPlace(),
      ...(session ? { sessionId: session } : {}),
    };
    return this.#runs.start(
      session,
      (client, partialResultToken, cancel) => request(client, "daiku/chat", { ...params, partialResultToken }, cancel),
      { text, ownChat },
    );
  }

  command(name: string, args: CommandArgs) {
    const session = this.current;
    const whole = { ...args, ...this.#common(session) };
    return this.#runs.start(session, (client, chunks, cancel) =>
      execute<RunResult>(client, name, whole, { chunks, cancel }),
    );
  }

  start<M extends RunMethod>(method: M, params: Requests[M][0]) {
    const session = this.current;
    return this.#runs.start(session, (client, partialResultToken, cancel) =>
      request(client, method, { ...params, ...this.#common(session), partialResultToken }, cancel),
    );
  }

  async resume(run: string) {
    await this.#runs.start(this.current, (client, partialResultToken, cancel) =>
      request(client, "daiku/resume", { runId: run, partialResultToken }, cancel),
    );
  }

  stop() {
    return this.#runs.stop();
  }

  steer(text: string) {
    return this.#runs.steer(text);
  }

  async approve(params: ApproveParams) {
    await request(await this.#client(), "daiku/approve", params);
    await this.#refreshIdle();
  }

  async answer(runId: string, inputId: string, text: string) {
    await request(await this.#client(), "daiku/answer", { runId, inputId, text });
    await this.#refreshIdle();
  }

  async undo(checkpointId: string) {
    const restored = await request(await this.#client(), "daiku/checkpoint/restore", { checkpointId });
    this.#runs.onFiles.fire();
    await this.catchUp();
    return restored;
  }

  async open(session: string) {
    if (!this.#activeRuns.of(session)) await this.#conversations.fetch(session);
    this.#open.choose(session);
    this.#open.show();
    this.#open.tellWorking();
  }

  async earlier() {
    const session = this.current;
    const part = session && (await this.#conversations.fetchEarlier(session));
    if (!part || session !== this.current) return;
    this.#options.post({ type: "earlier", session, ...part });
    this.#open.tellChunks();
  }

  async fork(sessionId: string, atSeq: number, restoreFiles = false) {
    const params = { sessionId, atSeq, restoreFiles };
    const session = await request(await this.#client(), "daiku/session/fork", params);
    this.#runs.onFiles.fire();
    await this.open(session.sessionId);
  }

  async remove(sessionId: string) {
    await request(await this.#client(), "daiku/session/delete", { sessionId });
    this.#runs.onFiles.fire();
    this.#conversations.forget(sessionId);
    if (this.current !== sessionId) return;
    this.#open.choose(undefined);
    this.#open.show();
  }

  async list(query: string) {
    const params = { ...(query ? { query } : {}), limit: 100 };
    return (await request(await this.#client(), "daiku/session/list", params)).sessions;
  }

  newChat() {
    this.#open.choose(undefined);
    this.#open.show();
    this.#open.tellWorking();
  }

  async reload() {
    if (!this.current || this.working) return;
    try {
      await this.#conversations.fetch(this.current);
    } catch (error) {
      this.#options.log.warn(`the last chat cannot be shown: ${errorText(error)}`);
      this.#open.choose(undefined);
    }
    this.#open.show();
  }

  async catchUp() {
    if (this.current) await this.#runs.refresh(this.current);
  }

  #client() {
    return this.#options.server.client();
  }

  #common(session: string | undefined) {
    const { model, approvals } = this.#options.choice();
    return { approvals, ...(model ? { model } : {}), ...(session ? { sessionId: session } : {}) };
  }

  #add(chunk: Chunk): void {
    if (chunk.session === this.current) this.#open.add(chunk);
    else if (chunk.type === "approval_asked" || chunk.type === "input_asked") this.#askedElsewhere.fire(chunk.session);
  }

  /** A run that is not under way here streams nothing: that its question was answered is fetched. */
  async #refreshIdle(): Promise<void> {
    if (!this.working) await this.catchUp();
  }
}

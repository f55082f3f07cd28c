// The conversations of this window: sends what a person says, keeps the streams, tells the panel.

import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { CommandArgs } from "../commands/code";
import type {
  ApproveParams,
  Chunk,
  ContextItem,
  EditGrant,
  Requests,
  RestoreResult,
  RunResult,
  Session,
} from "../contract.gen";
import type { Mode, ToPanel } from "../pure/chat/panel";
import { type Pending, pending } from "../pure/chat/pending";
import { execute, failureOf, onChunks, raw, request } from "../server/rpc";
import type { Server } from "../server/server";
import { createConversations, stub } from "./conversations";

/** One request that streams a run into this window. */
interface Work {
  session: string | undefined;
  /** The run that the person started; known from its first chunk. */
  run: string | undefined;
  cancel: vscode.CancellationTokenSource;
  /** It has a conversation of its own, beside the one that is open. */
  aside: boolean;
}

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
  start<M extends Starts>(method: M, params: Requests[M][0]): Promise<RunResult | undefined>;
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
type Starts = "daiku/plan/run" | "daiku/code";
type Approvals = "ask" | "edits";

export interface SendOptions {
  mode?: Mode;
  /** `edits`: are made at once, and looked through afterwards. */
  approvals?: Approvals;
  /** The edit that was asked for by pointing at its place. */
  grant?: EditGrant;
  /** In a conversation of its own, beside the one that is open. Raises what goes wrong. */
  aside?: boolean;
}

export interface ChatOptions {
  server: Server;
  state: vscode.Memento;
  log: vscode.LogOutputChannel;
  post: (message: ToPanel) => void;
  choice: () => { mode: Mode; model: string; approvals: Approvals };
}

const ABOUT_FILES = new Set<Chunk["type"]>(["edit", "review", "restored"]);
const SESSION = "daiku.session";
/** A run that does not stop within this time has its request cancelled too. */
const STOP_MS = 3000;

export function createChat({ server, state, log, post, choice }: ChatOptions): Chat {
  const working = new vscode.EventEmitter<boolean>();
  const waits = new vscode.EventEmitter<readonly Pending[]>();
  const arrived = new vscode.EventEmitter<readonly Chunk[]>();
  const files = new vscode.EventEmitter<void>();
  const elsewhere = new vscode.EventEmitter<string>();
  const works = new Set<Work>();
  let current = state.get<string>(SESSION);
  let outbox: Chunk[] = [];

  const workOf = (session: string | undefined) =>
    [...works].find((work) => work.session === session && !(work.aside && session === undefined));
  const conversation = () => (current ? conversations.of(current) : undefined);
  const isWorking = () => workOf(current) !== undefined;

  const choose = (session: string | undefined) => {
    current = session;
    void state.update(SESSION, session);
  };
  const snapshot = (): ToPanel => {
    const shown = conversation();
    return {
      type: "session",
      session: shown?.session ?? (current ? stub(current) : undefined),
      chunks: shown?.stream.chunks ?? [],
      working: isWorking(),
      ...(shown?.earlier ? { earlier: shown.earlier } : {}),
    };
  };
  const show = () => {
    post(snapshot());
    arrived.fire(conversation()?.stream.chunks ?? []);
  };
  const tellWorking = () => {
    post({ type: "working", session: current ?? "", working: isWorking() });
    working.fire(isWorking());
    tellWaiting();
  };
  const tellWaiting = () => waits.fire(waiting());
  const waiting = () => (isWorking() ? pending(conversation()?.stream.chunks ?? []) : []);

  /** Chunks that arrive in one breath go to the panel as one message. */
  const queue = (chunk: Chunk) => {
    if (outbox.length === 0) setImmediate(flush);
    outbox.push(chunk);
  };
  const flush = () => {
    const chunks = outbox.filter((chunk) => chunk.session === current);
    outbox = [];
    if (!current || chunks.length === 0) return;
    post({ type: "chunks", session: current, chunks });
    arrived.fire(chunks);
  };

  const take = (work: Work, chunk: Chunk) => {
    if (chunk.type === "run_started" && !chunk.parent) work.run = chunk.run;
    if (!work.session) {
      work.session = chunk.session;
      if (work.aside || !current) conversations.begin(chunk.session);
      if (!work.aside && !current) {
        choose(chunk.session);
        show();
      }
    }
    if (ABOUT_FILES.has(chunk.type)) files.fire();
    conversations.receive(chunk);
  };
  const shown = (chunk: Chunk) => {
    if (chunk.session !== current) {
      if (chunk.type === "approval_asked" || chunk.type === "input_asked") elsewhere.fire(chunk.session);
      return;
    }
    queue(chunk);
    if (chunk.type === "approval_asked" || chunk.type === "approval_given" || chunk.type === "run_finished")
      tellWaiting();
  };
  const conversations = createConversations({ server, log, shown });

  const common = (session: string | undefined) => {
    const { model, approvals } = choice();
    return { approvals, ...(model ? { model } : {}), ...(session ? { sessionId: session } : {}) };
  };

  /** Runs a request that streams; answers when it has ended, `undefined` when it was cancelled or failed. */
  const stream = async (
    session: string | undefined,
    start: (client: LanguageClient, token: string, cancel: vscode.CancellationToken) => Promise<RunResult>,
    { unsent, aside = false }: { unsent?: string; aside?: boolean } = {},
  ): Promise<RunResult | undefined> => {
    const work: Work = { session, run: undefined, cancel: new vscode.CancellationTokenSource(), aside };
    works.add(work);
    tellWorking();
    let listening: vscode.Disposable | undefined;
    try {
      const client = await server.client();
      const token = randomUUID();
      listening = onChunks(client, token, (chunk) => take(work, chunk));
      const result = await start(client, token, work.cancel.token);
      await refresh(result.sessionId);
      return result;
    } catch (error) {
      const failure = failureOf(error);
      if (!failure) return undefined;
      log.error(`${failure.message} ${raw(error)}`);
      if (aside) throw error;
      const nothingShown = work.run === undefined && unsent ? { text: unsent } : {};
      if (work.session === current || !current) post({ type: "failed", ...failure, ...nothingShown });
      return undefined;
    } finally {
      listening?.dispose();
      works.delete(work);
      work.cancel.dispose();
      flush();
      tellWorking();
    }
  };

  const refresh = async (sessionId: string) => {
    await conversations.refresh(sessionId);
    flush();
  };
  /** A run that is not under way here streams nothing: that its question was answered is fetched. */
  const answered = async () => {
    if (current && !workOf(current)) await refresh(current);
  };
  const openSession = async (sessionId: string) => {
    if (!workOf(sessionId)) await conversations.fetch(sessionId);
    choose(sessionId);
    show();
    tellWorking();
  };

  return {
    get current() {
      return current;
    },
    get working() {
      return isWorking();
    },
    get waiting() {
      return waiting();
    },
    get chunks() {
      return conversation()?.stream.chunks ?? [];
    },
    get busy() {
      return works.size > 0;
    },
    onWorking: working.event,
    onWaiting: waits.event,
    onChunks: arrived.event,
    onFiles: files.event,
    onAskedElsewhere: elsewhere.event,
    snapshot,

    send: (text, context, options = {}) => {
      const { aside = false, ...own } = options;
      const session = aside ? undefined : current;
      const { mode, model, approvals, grant } = { grant: undefined, ...choice(), ...own };
      return stream(
        session,
        (client, partialResultToken, cancel) =>
          request(
            client,
            "daiku/chat",
            {
              ...{
                text,
                context: [...context],
                mode: vscode.workspace.isTrusted ? mode : "ask",
                approvals,
                partialResultToken,
              },
              ...(model ? { model } : {}),
              ...(grant ? { grant } : {}),
              ...(session ? { sessionId: session } : {}),
            },
            cancel,
          ),
        { unsent: text, aside },
      );
    },
    command: (name, args) => {
      const session = current;
      const whole = { ...args, ...common(session) };
      return stream(session, (client, chunks, cancel) => execute<RunResult>(client, name, whole, { chunks, cancel }));
    },
    start: (method, params) => {
      const session = current;
      return stream(session, (client, partialResultToken, cancel) =>
        request(client, method, { ...params, ...common(session), partialResultToken }, cancel),
      );
    },
    resume: async (run) => {
      const session = current;
      await stream(session, (client, partialResultToken, cancel) =>
        request(client, "daiku/resume", { runId: run, partialResultToken }, cancel),
      );
    },
    stop: async () => {
      const work = workOf(current);
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
    },
    steer: async (text) => {
      const run = workOf(current)?.run;
      const client = server.running();
      if (run && client) await request(client, "daiku/steer", { runId: run, text });
    },
    approve: async (params) => {
      await request(await server.client(), "daiku/approve", params);
      await answered();
    },
    answer: async (runId, inputId, text) => {
      await request(await server.client(), "daiku/answer", { runId, inputId, text });
      await answered();
    },
    undo: async (checkpointId) => {
      const restored = await request(await server.client(), "daiku/checkpoint/restore", { checkpointId });
      files.fire();
      if (current) await refresh(current);
      return restored;
    },
    open: openSession,
    earlier: async () => {
      const session = current;
      const part = session && (await conversations.fetchEarlier(session));
      if (!part || session !== current) return;
      post({ type: "earlier", session, ...part });
      arrived.fire(conversation()?.stream.chunks ?? []);
    },
    fork: async (sessionId, atSeq, restoreFiles = false) => {
      const params = { sessionId, atSeq, restoreFiles };
      const session = await request(await server.client(), "daiku/session/fork", params);
      files.fire();
      await openSession(session.sessionId);
    },
    remove: async (sessionId) => {
      await request(await server.client(), "daiku/session/delete", { sessionId });
      files.fire();
      conversations.forget(sessionId);
      if (current === sessionId) {
        choose(undefined);
        show();
      }
    },
    list: async (query) => {
      const { sessions } = await request(await server.client(), "daiku/session/list", {
        ...(query ? { query } : {}),
        limit: 100,
      });
      return sessions;
    },
    newChat: () => {
      choose(undefined);
      show();
      tellWorking();
    },
    reload: async () => {
      if (!current || workOf(current)) return;
      try {
        await conversations.fetch(current);
      } catch (error) {
        log.warn(`the last chat cannot be shown: ${raw(error)}`);
        choose(undefined);
      }
      show();
    },
    catchUp: async () => {
      if (current) await refresh(current);
    },
  };
}

// A server for fast tests: answers requests as a test says, and streams chunks into them.

import type * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { Chunk } from "../../src/contract.gen";
import type { ServerState } from "../../src/pure/chat/panel";
import type { Server } from "../../src/server/server";
import { EventEmitter } from "../editor/editor";

export type Answers = Record<string, (params: never) => unknown>;

export interface FakeServer extends Server {
  /** What was asked of it, in order. */
  readonly asked: { method: string; params: Record<string, unknown> }[];
  /** Lets it come up or go down. */
  become(phase: ServerState["phase"]): void;
  /** Streams chunks into the newest request that takes any. */
  stream(...chunks: Chunk[]): void;
  /** Streams chunks into one of the requests that take any, counted from 0 in the order of their start. */
  streamInto(request: number, ...chunks: Chunk[]): void;
  /** How many requests were cancelled before their answer. */
  readonly cancelled: number;
  /** The methods that were asked for, in order. */
  methods(): string[];
  /** How often it was asked to start, and why it was restarted. */
  readonly starts: { count: number; restarts: string[] };
}

export function serverOf(answers: Answers): FakeServer {
  const asked: FakeServer["asked"] = [];
  const listeners = new Map<string, (chunk: Chunk) => void>();
  const takers: ((chunk: Chunk) => void)[] = [];
  const changed = new EventEmitter<ServerState>();
  let cancelled = 0;
  const starts = { count: 0, restarts: [] as string[] };
  let state: ServerState = { phase: "ready" };
  const client = {
    sendRequest: async (method: string, params: Record<string, unknown>, token?: vscode.CancellationToken) => {
      asked.push({ method, params });
      token?.onCancellationRequested(() => (cancelled += 1));
      const answer = answers[method];
      if (!answer) throw new Error(`nobody answers ${method}`);
      return answer(params as never);
    },
    onProgress: (_: unknown, token: string, listen: (chunk: Chunk) => void) => {
      listeners.set(token, listen);
      takers.push(listen);
      return { dispose: () => listeners.delete(token) };
    },
  } as unknown as LanguageClient;
  const become = (phase: ServerState["phase"]) => {
    state = { phase };
    changed.fire(state);
  };
  return {
    asked,
    starts,
    get cancelled() {
      return cancelled;
    },
    client: async () => {
      starts.count += 1;
      if (state.phase === "off") become("ready");
      return client;
    },
    methods: () => asked.map(({ method }) => method),
    running: () => (state.phase === "ready" ? client : undefined),
    pid: 1,
    get state() {
      return state;
    },
    onState: changed.event,
    restart: async (why) => void starts.restarts.push(why),
    stop: async () => undefined,
    become,
    streamInto: (request, ...chunks) => {
      for (const chunk of chunks) takers[request]?.(chunk);
    },
    stream: (...chunks) => {
      for (const chunk of chunks) [...listeners.values()].at(-1)?.(chunk);
    },
  };
}

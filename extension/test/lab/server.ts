// A server for fast tests: answers requests as a test says, and streams chunks into them.

import type { LanguageClient } from "vscode-languageclient/node";
import type { Chunk } from "../../src/contract.gen";
import type { ServerState } from "../../src/pure/chat/panel";
import type { Server } from "../../src/server/server";
import { EventEmitter } from "./editor";

export type Answers = Record<string, (params: never) => unknown>;

export interface FakeServer extends Server {
  /** What was asked of it, in order. */
  readonly asked: { method: string; params: Record<string, unknown> }[];
  /** Lets it come up or go down. */
  become(phase: ServerState["phase"]): void;
  /** Streams chunks into the newest request that takes any. */
  stream(...chunks: Chunk[]): void;
}

export function serverOf(answers: Answers): FakeServer {
  const asked: FakeServer["asked"] = [];
  const listeners = new Map<string, (chunk: Chunk) => void>();
  const changed = new EventEmitter<ServerState>();
  let state: ServerState = { phase: "ready" };
  const client = {
    sendRequest: async (method: string, params: Record<string, unknown>) => {
      asked.push({ method, params });
      const answer = answers[method];
      if (!answer) throw new Error(`nobody answers ${method}`);
      return answer(params as never);
    },
    onProgress: (_: unknown, token: string, listen: (chunk: Chunk) => void) => {
      listeners.set(token, listen);
      return { dispose: () => listeners.delete(token) };
    },
  } as unknown as LanguageClient;
  return {
    asked,
    client: async () => client,
    running: () => (state.phase === "ready" ? client : undefined),
    pid: 1,
    get state() {
      return state;
    },
    onState: changed.event as unknown as Server["onState"],
    restart: async () => undefined,
    stop: async () => undefined,
    become: (phase) => {
      state = { phase };
      changed.fire(state);
    },
    stream: (...chunks) => {
      for (const chunk of chunks) [...listeners.values()].at(-1)?.(chunk);
    },
  };
}

// The chat of a window with a server that answers as a test says, and the panel's requests to it.

import { createChat } from "../../src/chat/chat";
import { handleRequests } from "../../src/chat/requests";
import type { Chunk, RunResult, Session } from "../../src/contract.gen";
import type { ToPanel } from "../../src/pure/chat/panel";
import { quietLog as log, memento } from "../editor/editor";
import { type Answers, serverOf } from "./server";

export const sessionOf = (sessionId: string): Session => ({
  ...{ sessionId, title: "", createdAt: "", updatedAt: "", lastSeq: 0, status: "completed" as const },
});
export const ended = (sessionId: string): RunResult => ({
  ...{
    runId: "r1",
    sessionId,
    status: "completed" as const,
    text: "",
    lastSeq: 0,
    unattended: false,
    reasons: [],
    unchecked: false,
  },
  usage: { model: "", promptTokens: 0, completionTokens: 0, cachedTokens: 0 },
});

/** `kept`: what the server has of each conversation; `posted`: what the panel was told. */
export function chatWorld(answers: Answers = {}, approvals: "ask" | "edits" = "ask") {
  const posted: ToPanel[] = [];
  const kept: Chunk[] = [];
  const server = serverOf({
    "daiku/session/get": ({ sessionId }: { sessionId: string }) => ({
      session: sessionOf(sessionId),
      chunks: kept.filter((chunk) => chunk.session === sessionId),
    }),
    "daiku/checkpoint/restore": () => ({ files: [{ path: "a.py", kind: "edit" }], cannotUndo: [] }),
    ...answers,
  });
  const state = memento();
  const post = (message: ToPanel) => posted.push(message);
  const chat = createChat({
    ...{ server, state, log, post },
    choice: () => ({ mode: "act", model: "lab/one", approvals }),
  });
  const panel = handleRequests({
    ...{
      chat,
      server,
      log,
      post,
      openDiff: async () => undefined,
      setMode: () => undefined,
      setApprovals: async () => undefined,
    },
    situation: () => ({ server: server.state, trusted: true, model: "", mode: "act", folder: true }),
  });
  /** The chunks that the panel was sent to be added to what it shows. */
  const streamed = () => posted.flatMap((message) => (message.type === "chunks" ? message.chunks : []));
  return { server, chat, state, posted, kept, panel, streamed };
}

/** A request to the model that is under way until the test ends it. */
export function underWay() {
  let end: (result: RunResult) => void = () => undefined;
  const answer = () => new Promise<RunResult>((resolve) => (end = resolve));
  return { answer, end: (session: string) => end(ended(session)) };
}

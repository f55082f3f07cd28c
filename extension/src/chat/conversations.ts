// What this window holds of conversations: the end is fetched first, what streams is added, what is missing is asked for.

import type * as vscode from "vscode";
import type { Chunk, EarlierChunks, Session } from "../contract.gen";
import { Stream } from "../pure/chat/stream";
import { raw, request } from "../server/rpc";
import type { Server } from "../server/server";

/** Chunks of a conversation that are fetched at a time, the last ones first. */
const WINDOW = 600;

export interface Conversation {
  session: Session;
  readonly stream: Stream;
  /** Chunks that wait for the missing ones before them. */
  held: Chunk[] | undefined;
  /** What lies before the chunks that were fetched; `undefined` where nothing does. */
  earlier: EarlierChunks | undefined;
}

export interface Conversations {
  of(session: string): Readonly<Conversation> | undefined;
  /** A conversation of which nothing has been heard yet. */
  begin(session: string): void;
  /** Takes a chunk that streams; one of a conversation that this window does not hold is left out. */
  receive(chunk: Chunk): void;
  /** Fetches the end of a conversation, in place of what was held of it. */
  fetch(session: string): Promise<void>;
  /** Fetches the part before what is held; `undefined` where there is none or it is on its way. */
  fetchEarlier(session: string): Promise<{ chunks: Chunk[]; earlier?: EarlierChunks } | undefined>;
  /** Fetches what came since, and the title and status as they are now. */
  refresh(session: string): Promise<void>;
  forget(session: string): void;
}

export interface ConversationsOptions {
  server: Server;
  log: vscode.LogOutputChannel;
  /** Called with every chunk that is new at the end of a conversation, in order. */
  shown: (chunk: Chunk) => void;
}

export function createConversations({ server, log, shown }: ConversationsOptions): Conversations {
  const open = new Map<string, Conversation>();
  const fetching = new Set<Conversation>();

  const put = (session: Session, stream: Stream, earlier?: EarlierChunks) =>
    open.set(session.sessionId, { session, stream, held: undefined, earlier });
  const receive = (chunk: Chunk) => {
    const known = open.get(chunk.session);
    if (!known) return;
    if (known.held) {
      known.held.push(chunk);
      return;
    }
    const arrival = known.stream.offer(chunk);
    if (arrival === "gap") {
      log.warn(`chunks are missing before ${chunk.seq} of ${chunk.session}; asking for them`);
      known.held = [chunk];
      void mend(known);
    } else if (arrival === "new") shown(chunk);
  };
  const mend = async (known: Conversation) => {
    try {
      const client = await server.client();
      const { sessionId } = known.session;
      const tail = await request(client, "daiku/session/get", { sessionId, afterSeq: known.stream.lastSeq });
      for (const chunk of known.stream.fill(tail.chunks, tail.session.lastSeq)) shown(chunk);
    } catch (error) {
      log.error(`asking for missing chunks: ${raw(error)}`);
      const last = known.held?.at(0)?.seq ?? 0;
      known.stream.fill([], last - 1);
    }
    const held = known.held ?? [];
    known.held = undefined;
    for (const chunk of held) receive(chunk);
  };

  return {
    of: (session) => open.get(session),
    begin: (session) => void put(stub(session), new Stream()),
    receive,
    fetch: async (sessionId) => {
      const client = await server.client();
      const { session, chunks, earlier } = await request(client, "daiku/session/get", { sessionId, last: WINDOW });
      const stream = new Stream();
      stream.fill(chunks, session.lastSeq);
      put(session, stream, earlier);
    },
    fetchEarlier: async (sessionId) => {
      const known = open.get(sessionId);
      if (!known?.earlier || fetching.has(known)) return undefined;
      fetching.add(known);
      try {
        const client = await server.client();
        const { beforeSeq } = known.earlier;
        const part = await request(client, "daiku/session/get", { sessionId, last: WINDOW, beforeSeq });
        if (open.get(sessionId) !== known) return undefined; // fetched anew meanwhile
        known.earlier = part.earlier;
        return { chunks: known.stream.prepend(part.chunks), ...(part.earlier ? { earlier: part.earlier } : {}) };
      } finally {
        fetching.delete(known);
      }
    },
    refresh: async (sessionId) => {
      const known = open.get(sessionId);
      const client = server.running();
      if (!known || !client) return;
      const { session, chunks } = await request(client, "daiku/session/get", {
        sessionId,
        afterSeq: known.stream.lastSeq,
      });
      known.session = session;
      for (const chunk of known.stream.fill(chunks, session.lastSeq)) shown(chunk);
    },
    forget: (session) => void open.delete(session),
  };
}

/** A session of which only the id is known yet. */
export function stub(sessionId: string): Session {
  return { sessionId, title: "", createdAt: "", updatedAt: "", lastSeq: 0, status: "running" };
}

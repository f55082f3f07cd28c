// The conversations that this window holds: the end is fetched first, live chunks are added, gaps are fetched.

import type * as vscode from "vscode";
import type { Chunk, EarlierChunks, Session } from "../contract.gen";
import { Stream } from "../pure/chat/stream";
import { errorText, request } from "../server/rpc";
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

interface Needs {
  server: Pick<Server, "client" | "running">;
  log: Pick<vscode.LogOutputChannel, "warn" | "error">;
  /** Called with every chunk that is new at the end of a conversation, in order. */
  onNew: (chunk: Chunk) => void;
}

/** Every conversation of which this window holds chunks, by its session. */
export class Conversations {
  readonly #needs: Needs;
  readonly #held = new Map<string, Conversation>();
  readonly #fetching = new Set<Conversation>();

  constructor(needs: Needs) {
    this.#needs = needs;
  }

  of(session: string): Readonly<Conversation> | undefined {
    return this.#held.get(session);
  }

  /** A conversation of which nothing has been heard yet. */
  begin(session: string): void {
    this.#put(sessionStub(session), new Stream());
  }

  forget(session: string): void {
    this.#held.delete(session);
  }

  /** Takes a chunk that streams; one of a conversation that this window does not hold is left out. */
  receive(chunk: Chunk): void {
    const known = this.#held.get(chunk.session);
    if (!known) return;
    if (known.held) {
      known.held.push(chunk);
      return;
    }
    const arrival = known.stream.offer(chunk);
    if (arrival === "gap") {
      this.#needs.log.warn(`chunks are missing before ${chunk.seq} of ${chunk.session}; asking for them`);
      known.held = [chunk];
      void this.#fetchGap(known);
    } else if (arrival === "new") this.#needs.onNew(chunk);
  }

  /** Fetches the end of a conversation, in place of what was held of it. */
  async fetch(sessionId: string): Promise<void> {
    const client = await this.#needs.server.client();
    const { session, chunks, earlier } = await request(client, "daiku/session/get", { sessionId, last: WINDOW });
    const stream = new Stream();
    stream.fill(chunks, session.lastSeq);
    this.#put(session, stream, earlier);
  }

  /** Fetches the part before what is held; `undefined` where there is none or it is on its way. */
  async fetchEarlier(sessionId: string): Promise<{ chunks: Chunk[]; earlier?: EarlierChunks } | undefined> {
    const known = this.#held.get(sessionId);
    if (!known?.earlier || this.#fetching.has(known)) return undefined;
    this.#fetching.add(known);
    try {
      const client = await this.#needs.server.client();
      const { beforeSeq } = known.earlier;
      const part = await request(client, "daiku/session/get", { sessionId, last: WINDOW, beforeSeq });
      if (this.#held.get(sessionId) !== known) return undefined; // fetched anew meanwhile
      known.earlier = part.earlier;
      return { chunks: known.stream.prepend(part.chunks), ...(part.earlier ? { earlier: part.earlier } : {}) };
    } finally {
      this.#fetching.delete(known);
    }
  }

  /** Fetches what came since, and the title and status as they are now. */
  async refresh(sessionId: string): Promise<void> {
    const known = this.#held.get(sessionId);
    const client = this.#needs.server.running();
    if (!known || !client) return;
    const params = { sessionId, afterSeq: known.stream.lastSeq };
    const { session, chunks } = await request(client, "daiku/session/get", params);
    known.session = session;
    for (const chunk of known.stream.fill(chunks, session.lastSeq)) this.#needs.onNew(chunk);
  }

  #put(session: Session, stream: Stream, earlier?: EarlierChunks): void {
    this.#held.set(session.sessionId, { session, stream, held: undefined, earlier });
  }

  async #fetchGap(known: Conversation): Promise<void> {
    const { server, log, onNew } = this.#needs;
    try {
      const client = await server.client();
      const { sessionId } = known.session;
      const tail = await request(client, "daiku/session/get", { sessionId, afterSeq: known.stream.lastSeq });
      for (const chunk of known.stream.fill(tail.chunks, tail.session.lastSeq)) onNew(chunk);
    } catch (error) {
      log.error(`asking for missing chunks: ${errorText(error)}`);
      const last = known.held?.at(0)?.seq ?? 0;
      known.stream.fill([], last - 1);
    }
    const held = known.held ?? [];
    known.held = undefined;
    for (const chunk of held) this.receive(chunk);
  }
}

/** A session of which only the id is known yet. */
export function sessionStub(sessionId: string): Session {
  return { sessionId, title: "", createdAt: "", updatedAt: "", lastSeq: 0, status: "running" };
}

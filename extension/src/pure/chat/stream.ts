// The chunks of a session in order, without deltas that a whole message has replaced.

import type { Chunk } from "../../contract.gen";

type Arrival = "new" | "known" | "gap";

/** Chunks of one session in order of `seq`, kept so that a panel that is shown again can be filled. */
export class Stream {
  #chunks: Chunk[] = [];
  #last = 0;
  /** Chunks that a later one makes needless; nothing has to be looked through while there are none. */
  #passing = 0;

  get chunks(): readonly Chunk[] {
    return this.#chunks;
  }

  get lastSeq(): number {
    return this.#last;
  }

  /** Take a chunk that arrived live. `gap`: something before it is missing; ask for the tail, then offer it again. */
  offer(chunk: Chunk): Arrival {
    if (chunk.seq <= this.#last) return "known";
    if ((chunk.seqFrom ?? chunk.seq) > this.#last + 1) return "gap";
    this.#add(chunk);
    return "new";
  }

  /** Take what `session/get` answered: `lastSeq` is the session's, whose ephemeral chunks are not among them. */
  fill(chunks: readonly Chunk[], lastSeq: number): Chunk[] {
    const fresh = chunks.filter((chunk) => chunk.seq > this.#last);
    for (const chunk of fresh) this.#add(chunk);
    this.#last = Math.max(this.#last, lastSeq);
    return fresh;
  }

  /** Put older chunks before those that are here; the ones that are new. */
  prepend(chunks: readonly Chunk[]): Chunk[] {
    const had = new Set(this.#chunks.map(({ seq }) => seq));
    const fresh = chunks.filter(({ seq }) => !had.has(seq));
    this.#chunks = [...this.#chunks, ...fresh].sort((a, b) => a.seq - b.seq);
    return fresh;
  }

  #add(chunk: Chunk): void {
    this.#last = chunk.seq;
    if (this.#passing > 0) this.#forget(chunk);
    if (chunk.type === "delta" || chunk.type === "thinking" || chunk.type === "tool_output") this.#passing++;
    this.#chunks.push(chunk);
  }

  /** Drops the ephemeral chunks that this one closes: its text holds theirs. */
  #forget(closing: Chunk): void {
    const closes =
      closing.type === "message" && closing.data.role === "assistant"
        ? (c: Chunk) =>
            (c.type === "delta" || c.type === "thinking") && c.run === closing.run && c.agent === closing.agent
        : closing.type === "tool_response"
          ? (c: Chunk) => c.type === "tool_output" && c.data.id === closing.data.id
          : undefined;
    if (!closes) return;
    const before = this.#chunks.length;
    this.#chunks = this.#chunks.filter((chunk) => !closes(chunk));
    this.#passing -= before - this.#chunks.length;
  }
}

// Which edits of a conversation are applied and which undone: a fold over its chunks.

import type { Chunk } from "../../contract.gen";

/** The edits that stand, the newest first. */
interface Standing {
  readonly checkpoint: string;
  readonly before: Standing | undefined;
}

/** What stood when a checkpoint was taken, the newest checkpoint first. */
interface Mark {
  readonly checkpoint: string;
  readonly standing: Standing | undefined;
  readonly kind: "edit" | "taken_back";
  readonly before: Mark | undefined;
}

/** The chunks that say something of it, the newest first: each is kept without a copy of those before it. */
interface Trail {
  readonly chunk: Chunk;
  readonly before: Trail | undefined;
}

export interface UndoState {
  /** The checkpoints of the edits that do not stand. */
  readonly gone: ReadonlySet<string>;
  /** Brings back what was undone or rejected last; absent where that has been done, or nothing was. */
  readonly redo: string | undefined;
  readonly standing: Standing | undefined;
  readonly marks: Mark | undefined;
  /** What it was folded from, so that older chunks can be put before it. */
  readonly from: Trail | undefined;
}

export const NO_EDITS: UndoState = {
  ...{ gone: new Set(), redo: undefined, standing: undefined, marks: undefined, from: undefined },
};

/** The undo state after all chunks of a conversation. */
export const undoStateOf = (chunks: readonly Chunk[]): UndoState => chunks.reduce(foldEdit, NO_EDITS);

/** Going back to a checkpoint makes the files what they were when it was taken, whatever came after it. */
export function foldEdit(state: UndoState, chunk: Chunk): UndoState {
  if (chunk.type !== "edit" && chunk.type !== "review" && chunk.type !== "restored") return state;
  return { ...withChunk(state, chunk), from: { chunk, before: state.from } };
}

/** As if the chunks of `older` had been folded before those of `newer`. */
export function prependEdits(older: UndoState, newer: UndoState): UndoState {
  return trail(newer).reduce(foldEdit, older);
}

function trail({ from }: UndoState): Chunk[] {
  const chunks: Chunk[] = [];
  for (let one = from; one; one = one.before) chunks.push(one.chunk);
  return chunks.reverse();
}

/** The checkpoints of all edits, oldest first. */
export function editsOf({ marks }: UndoState): string[] {
  const edits: string[] = [];
  for (let mark = marks; mark; mark = mark.before) if (mark.kind === "edit") edits.push(mark.checkpoint);
  return edits.reverse();
}

function withChunk(state: UndoState, chunk: Chunk): UndoState {
  const { standing } = state;
  if (chunk.type === "edit") {
    const { checkpointId: checkpoint } = chunk.data;
    if (!checkpoint) return state;
    const marks: Mark = { checkpoint, standing, kind: "edit", before: state.marks };
    // Bringing something back now would take this edit away.
    return { ...state, standing: { checkpoint, before: standing }, marks, redo: undefined };
  }
  if (chunk.type === "review" && chunk.data.decision === "reject" && chunk.data.checkpointId)
    return withTakenBack(state, chunk.data.checkpointId, standing);
  if (chunk.type !== "restored") return state;
  const mark = markOf(state, chunk.data.checkpointId);
  const back = isBringingBack(state, chunk.data.checkpointId);
  const now = mark ? mark.standing : standing;
  const after = chunk.data.redo ? withTakenBack(state, chunk.data.redo, standing) : { ...state };
  return { ...after, redo: back ? undefined : after.redo, standing: now, gone: without(now, editsOf(state)) };
}

/** It brought back what had been undone or rejected: the files hold Daiku's changes again. */
export function isBringingBack(state: UndoState, checkpointId: string): boolean {
  const mark = markOf(state, checkpointId);
  if (mark?.kind !== "taken_back") return false;
  // Bringing back takes a checkpoint, too: going back to that one undoes again.
  return count(mark.standing) >= count(state.standing);
}

function withTakenBack(state: UndoState, checkpoint: string, standing: Standing | undefined): UndoState {
  return { ...state, redo: checkpoint, marks: { checkpoint, standing, kind: "taken_back", before: state.marks } };
}

function markOf(state: UndoState, checkpoint: string): Mark | undefined {
  for (let mark = state.marks; mark; mark = mark.before) if (mark.checkpoint === checkpoint) return mark;
  return undefined;
}

function without(standing: Standing | undefined, edits: readonly string[]): ReadonlySet<string> {
  const gone = new Set(edits);
  for (let one = standing; one; one = one.before) gone.delete(one.checkpoint);
  return gone;
}

function count(standing: Standing | undefined): number {
  let count = 0;
  for (let one = standing; one; one = one.before) count += 1;
  return count;
}

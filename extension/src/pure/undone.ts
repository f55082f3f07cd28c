// Which edits of a conversation stand and which do not: a fold over its chunks.

import type { Chunk } from "../contract.gen";

/** The edits that stand, the newest first. */
interface Standing {
  readonly checkpoint: string;
  readonly before: Standing | undefined;
}

/** What stood when a checkpoint was taken, the newest checkpoint first. */
interface Mark {
  readonly checkpoint: string;
  readonly standing: Standing | undefined;
  readonly kind: "edit" | "taken back";
  readonly before: Mark | undefined;
}

export interface Undone {
  /** The checkpoints of all edits, oldest first. */
  readonly edits: readonly string[];
  readonly gone: ReadonlySet<string>;
  /** Brings back what was undone or rejected last; absent where that has been done, or nothing was. */
  readonly redo: string | undefined;
  readonly standing: Standing | undefined;
  readonly marks: Mark | undefined;
  /** What it was folded from, so that older chunks can be put before it. */
  readonly from: readonly Chunk[];
}

export const NOTHING_UNDONE: Undone = {
  ...{ edits: [], gone: new Set(), redo: undefined, standing: undefined, marks: undefined, from: [] },
};

/** Going back to a checkpoint makes the files what they were when it was taken, whatever came after it. */
export function foldUndone(state: Undone, chunk: Chunk): Undone {
  if (chunk.type !== "edit" && chunk.type !== "review" && chunk.type !== "restored") return state;
  return { ...changed(state, chunk), from: [...state.from, chunk] };
}

/** As if the chunks of `older` had been folded before those of `newer`. */
export function foldedBefore(older: Undone, newer: Undone): Undone {
  return [...older.from, ...newer.from].reduce(foldUndone, NOTHING_UNDONE);
}

function changed(state: Undone, chunk: Chunk): Undone {
  const { standing } = state;
  if (chunk.type === "edit") {
    const { checkpointId: checkpoint } = chunk.data;
    if (!checkpoint || state.edits.includes(checkpoint)) return state;
    const marks: Mark = { checkpoint, standing, kind: "edit", before: state.marks };
    const edits = [...state.edits, checkpoint];
    // Bringing something back now would take this edit away.
    return { ...state, edits, standing: { checkpoint, before: standing }, marks, redo: undefined };
  }
  if (chunk.type === "review" && chunk.data.decision === "reject" && chunk.data.checkpointId)
    return takenBack(state, chunk.data.checkpointId, standing);
  if (chunk.type !== "restored") return state;
  const mark = markOf(state, chunk.data.checkpointId);
  const back = isBringingBack(state, chunk.data.checkpointId);
  const now = mark ? mark.standing : standing;
  const after = chunk.data.redo ? takenBack(state, chunk.data.redo, standing) : { ...state };
  return { ...after, redo: back ? undefined : after.redo, standing: now, gone: notAmong(now, state.edits) };
}

/** It brought back what had been undone or rejected: the files hold Daiku's changes again. */
export function isBringingBack(state: Undone, checkpointId: string): boolean {
  const mark = markOf(state, checkpointId);
  if (mark?.kind !== "taken back") return false;
  // Bringing back takes a checkpoint, too: going back to that one undoes again.
  return size(mark.standing) >= size(state.standing);
}

function takenBack(state: Undone, checkpoint: string, standing: Standing | undefined): Undone {
  return { ...state, redo: checkpoint, marks: { checkpoint, standing, kind: "taken back", before: state.marks } };
}

function markOf(state: Undone, checkpoint: string): Mark | undefined {
  for (let mark = state.marks; mark; mark = mark.before) if (mark.checkpoint === checkpoint) return mark;
  return undefined;
}

function notAmong(standing: Standing | undefined, edits: readonly string[]): ReadonlySet<string> {
  const gone = new Set(edits);
  for (let one = standing; one; one = one.before) gone.delete(one.checkpoint);
  return gone;
}

function size(standing: Standing | undefined): number {
  let count = 0;
  for (let one = standing; one; one = one.before) count += 1;
  return count;
}

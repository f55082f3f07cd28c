// Which edits of a conversation do not stand any more: a fold over its chunks.

import type { Chunk } from "../contract.gen";

export interface Undone {
  /** The checkpoints of all edits, oldest first. */
  readonly edits: readonly string[];
  readonly gone: ReadonlySet<string>;
  /** What a checkpoint that was taken before an undo brings back. */
  readonly redo: ReadonlyMap<string, readonly string[]>;
}

export const NOTHING_UNDONE: Undone = { edits: [], gone: new Set(), redo: new Map() };

export function foldUndone(state: Undone, chunk: Chunk): Undone {
  if (chunk.type === "edit" && chunk.data.checkpointId)
    return { ...state, edits: [...state.edits, chunk.data.checkpointId] };
  if (chunk.type !== "restored") return state;
  const { checkpointId, redo } = chunk.data;
  const gone = new Set(state.gone);
  const back = state.redo.get(checkpointId);
  if (back) {
    for (const checkpoint of back) gone.delete(checkpoint);
    return { ...state, gone };
  }
  const from = state.edits.indexOf(checkpointId);
  const fresh = from < 0 ? [] : state.edits.slice(from).filter((checkpoint) => !gone.has(checkpoint));
  for (const checkpoint of fresh) gone.add(checkpoint);
  return { ...state, gone, redo: redo ? new Map([...state.redo, [redo, fresh]]) : state.redo };
}

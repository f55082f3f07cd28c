// The mutable view while chunks are folded into it: its items, and adding or changing one.

import type { Envelope, Usage } from "../../contract.gen";
import type { UndoState } from "../chat/undoState";
import type { Common, Item, RunView } from "./items";

export interface Draft {
  items: Item[];
  lastSeq: number;
  run: RunView | undefined;
  usage: Usage;
  contextTokens: number;
  undone: UndoState;
}

/** What every item has: its key, run, agent, depth and time. */
export function common(draft: Draft, chunk: Envelope): Common {
  const depth = chunk.parent && chunk.parent !== chunk.run ? 1 : 0;
  const outer = depth && chunk.parent !== draft.run?.id ? 2 : depth;
  return { key: chunk.seq, run: chunk.run, agent: chunk.agent, depth: outer, time: chunk.time };
}

/** Adds an item at the end. */
export function push(draft: Draft, item: Item): void {
  draft.items.push(item);
}

/** The index of the last item that fits, or -1. */
export function findLast(draft: Draft, test: (item: Item) => boolean): number {
  return draft.items.findLastIndex(test);
}

/** Replaces the last item that fits; does nothing where none does. */
export function change<T extends Item>(draft: Draft, test: (item: Item) => item is T, next: (item: T) => Item): void {
  const at = findLast(draft, test);
  if (at >= 0) draft.items[at] = next(draft.items[at] as T);
}

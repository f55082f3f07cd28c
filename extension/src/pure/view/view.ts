// What the panel shows of a session: a pure fold over its chunks.

import type { Chunk, EarlierChunks, Usage } from "../../contract.gen";
import { foldEdit, NO_EDITS, prependEdits, type UndoState } from "../chat/undoState";
import type { Draft } from "./draft";
import { foldChunk } from "./folds";
import type { ApprovalItem, Item, QuestionItem, RunView } from "./items";
import { addUsage } from "./sums";

export interface View {
  readonly items: readonly Item[];
  readonly lastSeq: number;
  /** The newest run that the person started. */
  readonly run: RunView | undefined;
  /** What the whole session has used. */
  readonly usage: Usage;
  /** Tokens that the last model call was given: how full the context is. */
  readonly contextTokens: number;
  readonly undone: UndoState;
}

const NOTHING: Usage = { model: "", promptTokens: 0, completionTokens: 0, cachedTokens: 0 };

export const EMPTY: View = {
  items: [],
  lastSeq: 0,
  run: undefined,
  usage: NOTHING,
  contextTokens: 0,
  undone: NO_EDITS,
};

/** The view after more chunks, at the price of one copy of the list. A chunk that was already folded changes nothing. */
export function foldAll(view: View, chunks: readonly Chunk[]): View {
  const draft: Draft = { ...view, items: [...view.items] };
  for (const chunk of chunks) {
    if (chunk.seq <= draft.lastSeq) continue;
    draft.lastSeq = chunk.seq;
    foldChunk(draft, chunk);
    draft.undone = foldEdit(draft.undone, chunk);
  }
  return draft;
}

/** The view with what was used before its first chunk. */
export function withEarlier(view: View, earlier: EarlierChunks | undefined): View {
  return earlier ? { ...view, usage: addUsage(earlier.usage, view.usage) } : view;
}

/**
 * The view with older chunks before it. What they show comes first; of a plan the newer state stands. Their usage is
 * part of the view's already: `withEarlier` counted it.
 */
export function prepend(view: View, chunks: readonly Chunk[]): View {
  const older = foldAll(EMPTY, chunks);
  const had = new Set(view.items.map(({ key }) => key));
  const plans = new Set(view.items.flatMap((item) => (item.kind === "plan" ? [item.plan.planId] : [])));
  const before = older.items.filter(
    (item) => !had.has(item.key) && !(item.kind === "plan" && plans.has(item.plan.planId)),
  );
  return { ...view, items: [...before, ...view.items], undone: prependEdits(older.undone, view.undone) };
}

/** The questions that wait for the person, oldest first. */
export function waiting(view: View): (ApprovalItem | QuestionItem)[] {
  return view.items.filter(
    (item): item is ApprovalItem | QuestionItem =>
      (item.kind === "approval" && !item.decision) ||
      (item.kind === "question" && item.answer === undefined && !item.expired),
  );
}

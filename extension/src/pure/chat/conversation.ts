// What the chunks of a conversation say of plans, edits and runs.

import type { Chunk, Plan } from "../../contract.gen";
import { isBringingBack, undoStateOf } from "./undoState";

/** The plans of a conversation as they are now, the one that changed last at the end. */
export function plansOf(chunks: readonly Chunk[]): readonly Plan[] {
  const plans = new Map<string, Plan>();
  for (const chunk of chunks) {
    if (chunk.type !== "plan") continue;
    const { plan } = chunk.data;
    plans.delete(plan.planId);
    plans.set(plan.planId, plan);
  }
  return [...plans.values()];
}

/** The first checkpoint of the newest run whose edits still stand: going back to it undoes them all. */
export function lastEdits(chunks: readonly Chunk[]): string | undefined {
  const { gone: had } = undoStateOf(chunks);
  const edits = chunks.filter((chunk) => chunk.type === "edit" && !had.has(chunk.data.checkpointId));
  // A nested run's edits belong to the run that the person started: what came after its start.
  const last = edits.at(-1)?.seq ?? 0;
  const start = chunks.findLast((chunk) => chunk.type === "run_started" && !chunk.parent && chunk.seq < last)?.seq ?? 0;
  const first = edits.find((chunk) => chunk.seq > start);
  return first?.type === "edit" ? first.data.checkpointId : undefined;
}

/** The checkpoint that brings back what was undone or rejected last; none where that was done already. */
export const lastTakenBack = (chunks: readonly Chunk[]): string | undefined => undoStateOf(chunks).redo;

/** Whether going back to a checkpoint brings back what had been undone or rejected. */
export function bringsBack(chunks: readonly Chunk[], checkpointId: string): boolean {
  return isBringingBack(undoStateOf(chunks), checkpointId);
}

/** The files in which going back to a checkpoint would take away changes that the person has accepted. */
export function acceptedSince(chunks: readonly Chunk[], checkpointId: string): readonly string[] {
  const from = chunks.findIndex((chunk) => chunk.type === "edit" && chunk.data.checkpointId === checkpointId);
  if (from < 0) return [];
  const later = chunks.slice(from);
  const edited = new Set(
    later.flatMap((chunk) => (chunk.type === "edit" ? chunk.data.files : [])).map(({ path }) => path),
  );
  const accepted = later.flatMap((chunk) =>
    chunk.type === "review" && chunk.data.decision === "accept" && edited.has(chunk.data.path) ? [chunk.data.path] : [],
  );
  return [...new Set(accepted)];
}

/** How the person started a run, and where. */
export const startOf = (chunks: readonly Chunk[], run: string) =>
  chunks.find(
    (chunk): chunk is Chunk & { type: "run_started" } =>
      chunk.type === "run_started" && !chunk.parent && chunk.run === run,
  );

/** The newest run that the person started. */
export const lastRun = (chunks: readonly Chunk[]): string | undefined =>
  chunks.findLast((chunk) => chunk.type === "run_started" && !chunk.parent)?.run;

/** The diffs of the edits, oldest first. */
export const diffsOf = (chunks: readonly Chunk[]): readonly string[] =>
  chunks.flatMap((chunk) => (chunk.type === "edit" && chunk.data.diff ? [chunk.data.diff] : []));

/** A message that a conversation can be gone on with from. */
interface ForkPoint {
  /** A new conversation holds what came up to here. */
  atSeq: number;
  who: "person" | "daiku";
  text: string;
}

/** What was said on the outermost level, oldest first. */
export function forkPointsOf(chunks: readonly Chunk[]): readonly ForkPoint[] {
  return chunks.flatMap((chunk): ForkPoint[] => {
    if (chunk.parent) return [];
    // Before what the person said, so that it can be said otherwise; after what Daiku said.
    if (chunk.type === "run_started")
      return [{ atSeq: Math.max(0, chunk.seq - 1), who: "person", text: chunk.data.prompt }];
    if (chunk.type !== "message" || chunk.data.role !== "assistant" || !chunk.data.text.trim()) return [];
    return [{ atSeq: chunk.seq, who: "daiku", text: chunk.data.text }];
  });
}

/** Where the item begins that a chunk belongs to: the result of a call stands with the call. */
export function placeOf(chunks: readonly Chunk[], seq: number): { seq: number; callId: string } {
  const here = chunks.find((chunk) => chunk.seq === seq);
  if (here?.type !== "tool_call" && here?.type !== "tool_response") return { seq, callId: "" };
  const { id } = here.data;
  const call = chunks.findLast((chunk) => chunk.type === "tool_call" && chunk.data.id === id && chunk.seq <= seq);
  return { seq: call?.seq ?? seq, callId: id };
}

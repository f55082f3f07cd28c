// Tool calls in the view: add them, collect their output, close them with their result and edits.

import type { Chunk } from "../../contract.gen";
import { change, common, type Draft, findLast, push } from "./draft";
import type { Item, ToolItem } from "./items";
import { exitCodeOf } from "./proofs";
import { closeOpen } from "./replies";
import { cutMiddle } from "./sums";

type Outcome = Extract<Chunk, { type: "tool_response" }>["data"]["outcome"];

const STATUS: Record<Outcome, ToolItem["status"]> = {
  done: "ok",
  failed: "failed",
  denied: "refused",
  rejected: "rejected",
  unattended: "unasked",
  interrupted: "interrupted",
  cancelled: "cancelled",
  not_run: "skipped",
};

/** A call begins; it takes the place of the question about it, so that nothing jumps. */
export function addCall(draft: Draft, chunk: Extract<Chunk, { type: "tool_call" }>): void {
  closeOpen(draft, chunk);
  const { id, tool, args } = chunk.data;
  const item: ToolItem = {
    ...{ ...common(draft, chunk), kind: "tool", id, tool, args, output: "", status: "running", result: "" },
    ...{ durationMs: 0, untrusted: false, edits: [] },
  };
  const asked = findLast(draft, (other) => other.kind === "approval" && other.ask.callId === id);
  const approval = draft.items[asked];
  if (approval?.kind !== "approval") {
    push(draft, item);
    return;
  }
  const decision = approval.decision === "expired" ? undefined : approval.decision;
  draft.items[asked] = { ...item, key: approval.key, ...(decision ? { decision } : {}) };
}

/** What a call has printed. */
export function addOutput(draft: Draft, { data }: Extract<Chunk, { type: "tool_output" }>): void {
  change(draft, isCall(data.id), (tool) => ({ ...tool, output: cutMiddle(tool.output + data.text) }));
}

/** A call's result; where the call itself was not seen, it stands for it. */
export function closeCall(draft: Draft, chunk: Extract<Chunk, { type: "tool_response" }>): void {
  const { id, tool: name, outcome, result, durationMs, untrusted } = chunk.data;
  const status = STATUS[outcome];
  const at = findLast(draft, isCall(id));
  if (at < 0) {
    const made = { id, tool: name, args: {}, output: "", edits: [] };
    push(draft, { ...common(draft, chunk), kind: "tool", ...made, status, result, durationMs, untrusted });
    return;
  }
  const tool = draft.items[at] as ToolItem;
  const exitCode = exitCodeOf(chunk.data.data);
  draft.items[at] = { ...tool, status, result, durationMs, untrusted, ...(exitCode === undefined ? {} : { exitCode }) };
}

/** An edit belongs to the call that made it; one without a call stands for itself. */
export function addEdit(draft: Draft, chunk: Extract<Chunk, { type: "edit" }>): void {
  const edit = chunk.data;
  const called = edit.callId !== "" && findLast(draft, isCall(edit.callId)) >= 0;
  if (called) change(draft, isCall(edit.callId), (tool) => ({ ...tool, edits: [...tool.edits, edit] }));
  else push(draft, { ...common(draft, chunk), kind: "edit", edit });
}

const isCall =
  (id: string) =>
  (item: Item): item is ToolItem =>
    item.kind === "tool" && item.id === id;

// What the panel shows of a session: a pure fold over its chunks.

import type {
  Chunk,
  EarlierChunks,
  Edit,
  Envelope,
  MessageEvent,
  Notice,
  Plan,
  RunFinished,
  RunStarted,
  Usage,
} from "../contract.gen";
import { change, common, type Draft, findLast, push } from "./draft";
import type { ApprovalItem, Item, NoticeItem, QuestionItem, RunView, ToolItem } from "./items";
import { begun, changedBy, handedBack, teamWords } from "./nested";
import { exitCodeOf } from "./proofs";
import { addText, closeOpen, closeText, isOpenText, isReply, repliesBefore } from "./replies";
import { cutMiddle, plus } from "./sums";
import { foldedBefore, foldUndone, isBringingBack, NOTHING_UNDONE, type Undone } from "./undone";

export type * from "./items";
export { cutMiddle, plus };

export interface View {
  readonly items: readonly Item[];
  readonly lastSeq: number;
  /** The newest run that the person started. */
  readonly run: RunView | undefined;
  /** What the whole session has used. */
  readonly usage: Usage;
  /** Tokens that the last model call was given: how full the context is. */
  readonly contextTokens: number;
  readonly undone: Undone;
}

const NOTHING: Usage = { model: "", promptTokens: 0, completionTokens: 0, cachedTokens: 0 };

export const EMPTY: View = {
  items: [],
  lastSeq: 0,
  run: undefined,
  usage: NOTHING,
  contextTokens: 0,
  undone: NOTHING_UNDONE,
};

/** The view after one more chunk. A chunk that was already folded changes nothing. */
export function fold(view: View, chunk: Chunk): View {
  return foldAll(view, [chunk]);
}

/** The view after many chunks, at the price of one copy of the list. */
export function foldAll(view: View, chunks: readonly Chunk[]): View {
  const draft: Draft = { ...view, items: [...view.items] };
  for (const chunk of chunks) {
    if (chunk.seq <= draft.lastSeq) continue;
    draft.lastSeq = chunk.seq;
    apply(draft, chunk);
    draft.undone = foldUndone(draft.undone, chunk);
  }
  return draft;
}

type Outcome = Extract<Chunk, { type: "tool_response" }>["data"]["outcome"];

/** The view with what was used before its first chunk. */
export function withEarlier(view: View, earlier: EarlierChunks | undefined): View {
  return earlier ? { ...view, usage: plus(earlier.usage, view.usage) } : view;
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
  return { ...view, items: [...before, ...view.items], undone: foldedBefore(older.undone, view.undone) };
}

function apply(draft: Draft, chunk: Chunk): void {
  const { type } = chunk;
  switch (type) {
    case "run_started":
      runStarted(draft, chunk, chunk.data);
      break;
    case "run_finished":
      runFinished(draft, chunk, chunk.data);
      break;
    case "message":
      said(draft, chunk, chunk.data);
      break;
    case "delta":
      addText(draft, chunk, "text", chunk.data.text);
      break;
    case "thinking":
      addText(draft, chunk, "thinking", chunk.data.text);
      break;
    case "tool_call":
      toolCalled(draft, chunk);
      break;
    case "tool_output":
      changeTool(draft, chunk.data.id, (tool) => ({
        ...tool,
        output: cutMiddle(tool.output + chunk.data.text),
      }));
      break;
    case "tool_response":
      toolResponded(draft, chunk);
      break;
    case "approval_asked":
      closeOpen(draft, chunk);
      push(draft, { ...common(draft, chunk), kind: "approval", ask: chunk.data });
      break;
    case "approval_given": {
      const { approvalId, decision, feedback } = chunk.data;
      change(draft, isApproval(approvalId), (item) => ({
        ...item,
        decision,
        ...(feedback ? { feedback } : {}),
      }));
      break;
    }
    case "input_asked":
      closeOpen(draft, chunk);
      push(draft, { ...common(draft, chunk), kind: "question", ask: chunk.data, expired: false });
      break;
    case "input_given":
      change(draft, isQuestion(chunk.data.inputId), (item) => ({ ...item, answer: chunk.data.text }));
      break;
    case "plan":
      planChanged(draft, chunk, chunk.data.plan);
      break;
    case "edit":
      edited(draft, chunk, chunk.data);
      break;
    case "usage":
      draft.usage = plus(draft.usage, chunk.data);
      if (!chunk.parent && chunk.data.promptTokens)
        draft.contextTokens = chunk.data.promptTokens + chunk.data.completionTokens;
      break;
    case "notice":
      noticed(draft, chunk, chunk.data);
      break;
    case "error":
      closeOpen(draft, chunk);
      push(draft, { ...common(draft, chunk), kind: "error", error: chunk.data });
      break;
    case "handoff_start": {
      const { from, to, request, run: child } = chunk.data;
      push(draft, { ...common(draft, chunk), kind: "handoff", from, to, request, child, step: undefined });
      break;
    }
    case "handoff_end":
      handedBack(draft, chunk.data);
      break;
    case "compacted": {
      const { summary, beforeTokens: before, afterTokens: after } = chunk.data;
      push(draft, { ...common(draft, chunk), kind: "compacted", summary, before, after });
      break;
    }
    case "bullet":
      push(draft, { ...common(draft, chunk), kind: "bullet", bullet: chunk.data });
      break;
    case "agent_start":
    case "agent_end":
    case "checkpoint":
      break;
    case "review":
      push(draft, { ...common(draft, chunk), kind: "review", review: chunk.data });
      break;
    case "restored":
      push(draft, {
        ...common(draft, chunk),
        kind: "restored",
        restored: chunk.data,
        back: isBringingBack(draft.undone, chunk.data.checkpointId),
      });
      break;
    default:
      unknown(type);
      break;
  }
}

/** An event that has no case above fails the type check here; one from a newer server is left out. */
function unknown(_type: never): void {}

function runStarted(draft: Draft, chunk: Envelope, data: RunStarted): void {
  if (chunk.parent) {
    begun(draft, chunk.run, data);
    return;
  }
  const repeatable = chunk.agent === "coordinator" && !data.driven;
  draft.run = { id: chunk.run, status: "open", mode: data.mode, model: data.model, started: chunk.time, repeatable };
  const { prompt: text, context, images } = data;
  push(draft, { ...common(draft, chunk), kind: "user", text, context, images: images.length, steering: false });
}

function runFinished(draft: Draft, chunk: Envelope, data: RunFinished): void {
  closeRun(draft, chunk.run);
  if (chunk.parent || draft.run?.id !== chunk.run) return;
  const seconds = Math.max(0, (Date.parse(chunk.time) - Date.parse(draft.run.started)) / 1000);
  draft.run = { ...draft.run, status: data.status };
  push(draft, {
    ...common(draft, chunk),
    kind: "end",
    status: data.status,
    usage: data.usage,
    seconds,
    changed: changedBy(draft),
  });
}

/** A call of a model that fails again and again is one line that counts. */
function noticed(draft: Draft, chunk: Envelope, { level, text, attempt }: Notice): void {
  const item: NoticeItem = { ...common(draft, chunk), kind: "notice", level, text, ...(attempt ? { attempt } : {}) };
  const at = attempt ? draft.items.findLastIndex((one) => one.run === chunk.run && !isReply(one)) : -1;
  const former = draft.items[at];
  if (former?.kind === "notice" && former.attempt && former.agent === chunk.agent)
    draft.items[at] = { ...item, key: former.key };
  else push(draft, item);
}

/** Nothing of an ended run waits any longer. */
function closeRun(draft: Draft, run: string): void {
  draft.items.forEach((item, i) => {
    if (item.run !== run) return;
    if (item.kind === "tool" && item.status === "running") draft.items[i] = { ...item, status: "interrupted" };
    else if (item.kind === "approval" && !item.decision) draft.items[i] = { ...item, decision: "expired" };
    else if (item.kind === "user" && item.unread) draft.items[i] = { ...item, unread: 0 };
    else if (item.kind === "question" && item.answer === undefined) draft.items[i] = { ...item, expired: true };
    else if (isOpenText(item)) draft.items[i] = { ...item, done: true };
  });
}

function said(draft: Draft, chunk: Envelope, { role, text, thinking, calls, partial }: MessageEvent): void {
  const between = calls.length > 0;
  const how = () => ({
    ...teamWords(draft, chunk, text, between),
    ...(between && { between }),
    ...(partial && { partial }),
  });
  if (role === "assistant") closeText(draft, chunk, text, thinking, how());
  else {
    const item = { ...common(draft, chunk), kind: "user", text, context: [], images: 0, steering: true } as const;
    push(draft, { ...item, context: [], unread: repliesBefore(draft, chunk.run) });
  }
}

function toolCalled(draft: Draft, chunk: Chunk & { type: "tool_call" }): void {
  closeOpen(draft, chunk);
  const { id, tool, args } = chunk.data;
  const item: ToolItem = {
    ...common(draft, chunk),
    ...{
      kind: "tool",
      id,
      tool,
      args,
      output: "",
      status: "running",
      result: "",
      durationMs: 0,
      untrusted: false,
      edits: [],
    },
  };
  const asked = findLast(draft, (other) => other.kind === "approval" && other.ask.callId === id);
  const approval = draft.items[asked];
  if (approval?.kind !== "approval") {
    push(draft, item);
    return;
  }
  // The call takes the place of the question about it, so that nothing jumps.
  const decision = approval.decision === "expired" ? undefined : approval.decision;
  draft.items[asked] = { ...item, key: approval.key, ...(decision ? { decision } : {}) };
}

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

function toolResponded(draft: Draft, chunk: Chunk & { type: "tool_response" }): void {
  const { id, tool: name, outcome, result, durationMs, untrusted } = chunk.data;
  const status = STATUS[outcome];
  const at = findLast(draft, isTool(id));
  if (at < 0) {
    const made = { id, tool: name, args: {}, output: "", edits: [] };
    push(draft, { ...common(draft, chunk), kind: "tool", ...made, status, result, durationMs, untrusted });
    return;
  }
  const tool = draft.items[at] as ToolItem;
  const exitCode = exitCodeOf(chunk.data.data);
  draft.items[at] = { ...tool, status, result, durationMs, untrusted, ...(exitCode === undefined ? {} : { exitCode }) };
}

function edited(draft: Draft, chunk: Envelope, edit: Edit): void {
  const called = edit.callId !== "" && findLast(draft, isTool(edit.callId)) >= 0;
  if (called) changeTool(draft, edit.callId, (tool) => ({ ...tool, edits: [...tool.edits, edit] }));
  else push(draft, { ...common(draft, chunk), kind: "edit", edit });
}

function planChanged(draft: Draft, chunk: Envelope, plan: Plan): void {
  const at = findLast(draft, (item) => item.kind === "plan" && item.plan.planId === plan.planId);
  const item = draft.items[at];
  if (item?.kind === "plan") draft.items[at] = { ...item, plan };
  else push(draft, { ...common(draft, chunk), kind: "plan", plan });
}

const isTool =
  (id: string) =>
  (item: Item): item is ToolItem =>
    item.kind === "tool" && item.id === id;
const isApproval =
  (id: string) =>
  (item: Item): item is ApprovalItem =>
    item.kind === "approval" && item.ask.approvalId === id;
const isQuestion =
  (id: string) =>
  (item: Item): item is QuestionItem =>
    item.kind === "question" && item.ask.inputId === id;

function changeTool(draft: Draft, id: string, next: (tool: ToolItem) => ToolItem): void {
  change(draft, isTool(id), next);
}

/** The questions that wait for the person, oldest first. */
export function waiting(view: View): (ApprovalItem | QuestionItem)[] {
  return view.items.filter(
    (item): item is ApprovalItem | QuestionItem =>
      (item.kind === "approval" && !item.decision) ||
      (item.kind === "question" && item.answer === undefined && !item.expired),
  );
}

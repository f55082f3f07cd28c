// What each chunk changes in the view, one entry a type.

import { CHUNK_TYPES, type Chunk, type ChunkType, type JsonObject } from "../../contract.gen";
import { isBringingBack } from "../chat/undoState";
import { addCall, addEdit, addOutput, closeCall } from "./calls";
import { change, common, type Draft, findLast, push } from "./draft";
import type { ApprovalItem, Item, LessonsItem, NoticeItem, QuestionItem } from "./items";
import { changesOf, closeHandoff, describeNested, teamWords } from "./nested";
import { addText, closeOpen, closeText, isOpenText, isReply, repliesBefore } from "./replies";
import { addUsage } from "./sums";
import { EVENT_LINES, type Line } from "./tables.gen";

type Fold<T extends ChunkType> = (draft: Draft, chunk: Extract<Chunk, { type: T }>) => void;

/** What is neither a line nor folded with others is shown as it came; a type from a newer server is left out. */
export function foldChunk(draft: Draft, chunk: Chunk): void {
  const { type } = chunk;
  if (isLine(type)) {
    const line: Line | null = EVENT_LINES[type];
    if (line) {
      const fields = { ...chunk.data };
      push(draft, { ...common(draft, chunk), kind: "line", icon: line.icon, text: lineText(line, fields), fields });
    }
  } else if (isFolded(type)) (FOLDS[type] as Fold<ChunkType>)(draft, chunk);
  else if (CHUNK_TYPES.has(type)) push(draft, { ...common(draft, chunk), kind: "event", event: chunk });
}

/** What a line says of an event with these fields. */
const lineText = ({ text, cases = [] }: Line, fields: JsonObject): string =>
  cases.find(({ field, value }) => fields[field] === value)?.text ?? text;

type LineType = keyof typeof EVENT_LINES;
type FoldedType = keyof typeof FOLDS;
/** How each of these looks is in `webview/items/Looks.tsx`. */
export type ShownAsItCame = Exclude<ChunkType, LineType | FoldedType>;

const isLine = (type: ChunkType): type is LineType => Object.hasOwn(EVENT_LINES, type);
const isFolded = (type: ChunkType): type is FoldedType => Object.hasOwn(FOLDS, type);

const nothing = (): void => undefined;

const FOLDS = {
  run_started: startRun,
  run_finished: finishRun,
  message: addMessage,
  delta: (draft, chunk) => addText(draft, chunk, "text", chunk.data.text),
  thinking: (draft, chunk) => addText(draft, chunk, "thinking", chunk.data.text),
  tool_call: addCall,
  tool_output: addOutput,
  tool_response: closeCall,
  approval_asked: (draft, chunk) => {
    closeOpen(draft, chunk);
    push(draft, { ...common(draft, chunk), kind: "approval", ask: chunk.data });
  },
  approval_given: (draft, { data: { approvalId, decision, feedback } }) => {
    const asked = (item: Item): item is ApprovalItem => item.kind === "approval" && item.ask.approvalId === approvalId;
    change(draft, asked, (item) => ({ ...item, decision, ...(feedback ? { feedback } : {}) }));
  },
  input_asked: (draft, chunk) => {
    closeOpen(draft, chunk);
    push(draft, { ...common(draft, chunk), kind: "question", ask: chunk.data, expired: false });
  },
  input_given: (draft, { data: { inputId, text } }) => {
    const asked = (item: Item): item is QuestionItem => item.kind === "question" && item.ask.inputId === inputId;
    change(draft, asked, (item) => ({ ...item, answer: text }));
  },
  plan: putPlan,
  todo: putTodo,
  edit: addEdit,
  usage: (draft, { parent, data }) => {
    draft.usage = addUsage(draft.usage, data);
    if (!parent && data.promptTokens) draft.contextTokens = data.promptTokens + data.completionTokens;
  },
  notice: addNotice,
  error: (draft, chunk) => {
    closeOpen(draft, chunk);
    push(draft, { ...common(draft, chunk), kind: "error", error: chunk.data });
  },
  handoff_start: (draft, chunk) => {
    const { from, to, request, run: child } = chunk.data;
    push(draft, { ...common(draft, chunk), kind: "handoff", from, to, request, child, step: undefined });
  },
  handoff_end: (draft, { data }) => closeHandoff(draft, data),
  checkpoint: nothing,
  restored: (draft, chunk) => {
    const back = isBringingBack(draft.undone, chunk.data.checkpointId);
    push(draft, { ...common(draft, chunk), kind: "restored", restored: chunk.data, back });
  },
} satisfies { [T in Exclude<ChunkType, LineType>]?: Fold<T> };

function startRun(draft: Draft, chunk: Extract<Chunk, { type: "run_started" }>): void {
  const { data } = chunk;
  if (chunk.parent) {
    describeNested(draft, chunk.run, data);
    addLessons(draft, chunk);
    return;
  }
  const repeatable = chunk.agent === "coordinator" && !data.driven;
  draft.run = { id: chunk.run, status: "open", mode: data.mode, model: data.model, started: chunk.time, repeatable };
  const { prompt: text, context, images } = data;
  push(draft, { ...common(draft, chunk), kind: "user", text, context, images: images.length, steering: false });
  addLessons(draft, chunk);
}

function addLessons(draft: Draft, chunk: Extract<Chunk, { type: "run_started" }>): void {
  const { lessons } = chunk.data;
  if (lessons.length) push(draft, { ...common(draft, chunk), kind: "lessons", lessons });
}

function finishRun(draft: Draft, chunk: Extract<Chunk, { type: "run_finished" }>): void {
  closeRun(draft, chunk.run);
  noteUse(draft, chunk);
  if (chunk.parent || draft.run?.id !== chunk.run) return;
  const { status, usage } = chunk.data;
  // Older servers send neither reasons nor `unchecked`.
  const unchecked = chunk.data.unchecked ?? false;
  const reasons = (chunk.data.reasons ?? []).map(({ message }) => message);
  const seconds = Math.max(0, (Date.parse(chunk.time) - Date.parse(draft.run.started)) / 1000);
  draft.run = { ...draft.run, status };
  const end = { status, reasons, unchecked, usage, seconds, changed: changesOf(draft) };
  push(draft, { ...common(draft, chunk), kind: "end", ...end });
}

/** Which lessons a run cited: beside those that it was told, or, where only its nested runs were told any, by themselves. */
function noteUse(draft: Draft, chunk: Extract<Chunk, { type: "run_finished" }>): void {
  const used = chunk.data.usedBullets;
  const isTold = (item: Item): item is LessonsItem => item.kind === "lessons";
  const own = (item: Item): item is LessonsItem => isTold(item) && item.run === chunk.run;
  if (draft.items.some(own)) change(draft, own, (item) => ({ ...item, used }));
  else if (!chunk.parent && used.length) {
    const told = new Map(draft.items.filter(isTold).flatMap(({ lessons }) => lessons.map((each) => [each.id, each])));
    const lessons = used.flatMap((id) => told.get(id) ?? []);
    push(draft, { ...common(draft, chunk), kind: "lessons", lessons, used });
  }
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

/** A call of a model that fails again and again is one line that counts. */
function addNotice(draft: Draft, chunk: Extract<Chunk, { type: "notice" }>): void {
  const { level, text, attempt } = chunk.data;
  const item: NoticeItem = { ...common(draft, chunk), kind: "notice", level, text, ...(attempt ? { attempt } : {}) };
  const at = attempt ? draft.items.findLastIndex((one) => one.run === chunk.run && !isReply(one)) : -1;
  const former = draft.items[at];
  if (former?.kind === "notice" && former.attempt && former.agent === chunk.agent)
    draft.items[at] = { ...item, key: former.key };
  else push(draft, item);
}

/** A whole reply of the model, or what the person said while a run was at work. */
function addMessage(draft: Draft, chunk: Extract<Chunk, { type: "message" }>): void {
  const { role, text, thinking, calls, partial } = chunk.data;
  if (role !== "assistant") {
    const unread = repliesBefore(draft, chunk.run);
    push(draft, { ...common(draft, chunk), kind: "user", text, context: [], images: 0, steering: true, unread });
    return;
  }
  const between = calls.length > 0;
  closeText(draft, chunk, text, thinking, {
    ...teamWords(draft, chunk, text, between),
    ...(between && { between }),
    ...(partial && { partial }),
  });
}

/** One list a run, changed where it stands. */
function putTodo(draft: Draft, chunk: Extract<Chunk, { type: "todo" }>): void {
  const todo = chunk.data.items;
  const at = findLast(draft, (item) => item.kind === "todo" && item.run === chunk.run);
  const item = draft.items[at];
  if (item?.kind === "todo") draft.items[at] = { ...item, todo };
  else push(draft, { ...common(draft, chunk), kind: "todo", todo });
}

function putPlan(draft: Draft, chunk: Extract<Chunk, { type: "plan" }>): void {
  const { plan } = chunk.data;
  const at = findLast(draft, (item) => item.kind === "plan" && item.plan.planId === plan.planId);
  const item = draft.items[at];
  if (item?.kind === "plan") draft.items[at] = { ...item, plan };
  else push(draft, { ...common(draft, chunk), kind: "plan", plan });
}

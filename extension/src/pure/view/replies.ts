// A model's reply while it streams: collect deltas, replace them by the whole reply; track read messages.

import type { Envelope } from "../../contract.gen";
import { common, type Draft, push } from "./draft";
import type { Item, TextItem } from "./items";

/** Whether an item is a text or a thought of a model. */
export const isReply = (item: Item): item is TextItem => item.kind === "text" || item.kind === "thinking";

/** Whether an item is a text or a thought that still grows. */
export const isOpenText = (item: Item): item is TextItem => isReply(item) && !item.done;

/**
 * What is said while a tool runs, or while a reply streams, is read by the next reply; else a reply that has
 * not begun to stream may have been asked for before.
 */
export function repliesBefore(draft: Draft, run: string): number {
  const known = draft.items.some((item) => item.run === run && (isOpenText(item) || isRunning(item)));
  return known ? 1 : 2;
}

const isRunning = (item: Item): boolean => item.kind === "tool" && item.status === "running";

/** A reply begins, made from what the person had said when it was asked for. */
function markRead(draft: Draft, run: string): void {
  for (let i = draft.items.length - 1; i >= 0; i--) {
    const item = draft.items[i];
    if (item?.kind !== "user" || item.run !== run) continue;
    if (!item.steering) return;
    if (item.unread) draft.items[i] = { ...item, unread: item.unread - 1 };
  }
}

/** One more piece of a text or a thought. */
export function addText(draft: Draft, chunk: Envelope, kind: TextItem["kind"], text: string): void {
  const at = lastOpen(draft, chunk);
  const open = at < 0 ? undefined : (draft.items[at] as TextItem);
  if (open?.kind === kind) {
    draft.items[at] = { ...open, text: open.text + text };
    return;
  }
  if (open) draft.items[at] = { ...open, done: true, ended: chunk.time };
  else markRead(draft, chunk.run);
  push(draft, { ...common(draft, chunk), kind, text, done: false });
}

/** A whole reply closes its deltas; where none were seen (a replay), it stands for them. */
export function closeText(draft: Draft, chunk: Envelope, text: string, thinking: string, how: Partial<TextItem>): void {
  const tail = replyTail(draft, chunk);
  if (tail.length === 0) markRead(draft, chunk.run);
  if (thinking && !tail.some((i) => draft.items[i]?.kind === "thinking")) {
    const at = tail[0] ?? draft.items.length;
    draft.items.splice(at, 0, { ...common(draft, chunk), kind: "thinking", text: thinking, done: true });
    for (const [n, i] of tail.entries()) tail[n] = i + 1;
  }
  const shown = tail.filter((i) => draft.items[i]?.kind === "text");
  for (const i of tail) {
    const item = draft.items[i];
    if (item && isOpenText(item)) draft.items[i] = { ...item, done: true, ended: chunk.time };
  }
  const [first, ...rest] = shown;
  if (first !== undefined) {
    const item = draft.items[first] as TextItem;
    const last = rest.at(-1) ?? first;
    if (rest.length === 0 && item.text !== text) draft.items[first] = { ...item, text };
    draft.items[last] = { ...(draft.items[last] as TextItem), said: chunk.seq, ...how };
  } else if (text.trim()) {
    const base = common(draft, chunk);
    push(draft, { ...base, key: base.key + 0.5, kind: "text", text, done: true, said: chunk.seq, ...how });
  }
}

/** Where the texts and thoughts of the reply that is under way stand, in order. */
function replyTail(draft: Draft, chunk: Envelope): number[] {
  const found: number[] = [];
  for (let i = draft.items.length - 1; i >= 0; i--) {
    const item = draft.items[i];
    if (!item || item.run !== chunk.run) continue;
    if (item.kind !== "text" && item.kind !== "thinking") {
      if (item.kind === "notice" || (item.kind === "user" && item.steering)) continue;
      break;
    }
    if (item.agent !== chunk.agent) continue;
    if (item.done && item.kind === "text") break;
    found.unshift(i);
  }
  return found;
}

function lastOpen(draft: Draft, chunk: Envelope): number {
  for (let i = draft.items.length - 1; i >= 0 && i > draft.items.length - 30; i--) {
    const item = draft.items[i];
    if (item && isOpenText(item) && item.run === chunk.run && item.agent === chunk.agent) return i;
  }
  return -1;
}

/** The text that is under way ends here. */
export function closeOpen(draft: Draft, chunk: Envelope): void {
  const at = lastOpen(draft, chunk);
  const item = draft.items[at];
  if (item && isOpenText(item)) draft.items[at] = { ...item, done: true, ended: chunk.time };
}

// Scrolls to a tool call of the conversation, unfolds what hides it, and focuses it.

type Listener = (callId: string) => void;
const listeners = new Set<Listener>();

/** Hears of calls that are to be seen, so that what folds them opens. */
export function onReveal(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Shows the tool call with this id. */
export const reveal = (callId: string): void => show(callId, 120, () => callsOf(callId)[0]);

/** Shows the tool call with this id that begins at `seq` or later, otherwise the item that does. */
export function revealPlace(seq: number, callId: string): void {
  const after = (found: readonly HTMLElement[]) => found.find((one) => keyOf(one) >= seq);
  // After a conversation that is opened for this has been drawn.
  show(callId, 250, () => after(callsOf(callId)) ?? after([...document.querySelectorAll<HTMLElement>("[data-key]")]));
}

const callsOf = (callId: string): HTMLElement[] =>
  callId ? [...document.querySelectorAll<HTMLElement>(`[data-call="${CSS.escape(callId)}"]`)] : [];

const keyOf = (element: HTMLElement): number => Number(element.closest<HTMLElement>("[data-key]")?.dataset.key ?? 0);

/** Unfolds what hides a call, and shows and focuses what is found once that has been drawn. */
function show(callId: string, delay: number, find: () => HTMLElement | undefined): void {
  for (const listener of listeners) listener(callId);
  setTimeout(() => {
    const found = find();
    const head = found?.querySelector<HTMLElement>(".tool-head") ?? found;
    if (head === found && head) head.tabIndex = -1;
    if (head?.getAttribute("aria-expanded") === "false") head.click();
    head?.focus({ preventScroll: true });
    requestAnimationFrame(() => found?.scrollIntoView({ block: "center" }));
  }, delay);
}

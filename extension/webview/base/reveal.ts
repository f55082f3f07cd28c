// Scrolls to a tool call of the conversation, unfolds what hides it, and focuses it.

type Listener = (callId: string) => void;
const listeners = new Set<Listener>();

/** Hears of calls that are to be seen, so that what folds them opens. */
export function onReveal(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Shows the tool call with this id. */
export function reveal(callId: string): void {
  for (const listener of listeners) listener(callId);
  // After what opens has been drawn.
  setTimeout(() => {
    const found = document.querySelector<HTMLElement>(`[data-call="${CSS.escape(callId)}"]`);
    const head = found?.querySelector<HTMLElement>(".tool-head");
    if (head?.getAttribute("aria-expanded") === "false") head.click();
    head?.focus({ preventScroll: true });
    requestAnimationFrame(() => found?.scrollIntoView({ block: "center" }));
  }, 120);
}

// The panel in a test: what it is told, what it says, where it is looked at and pressed.

import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, vi } from "vitest";
import type { Chunk, Session } from "../../src/contract.gen";
import type { FromPanel, ToPanel } from "../../src/pure/chat/panel";

export const posted: FromPanel[] = [];
let kept: unknown;
vi.stubGlobal("acquireVsCodeApi", () => ({
  postMessage: (message: FromPanel) => posted.push(message),
  getState: () => kept,
  setState: (state: unknown) => {
    kept = state;
  },
}));
vi.stubGlobal("requestAnimationFrame", (run: () => void) => setTimeout(run, 0));
Element.prototype.scrollIntoView ??= () => undefined;

const { App } = await import("../../webview/App");
const { Store } = await import("../../webview/store");

export const SESSION: Session = {
  sessionId: "s1",
  title: "Test",
  createdAt: "2026-11-01T10:00:00.000Z",
  updatedAt: "2026-11-01T10:00:00.000Z",
  lastSeq: 0,
  status: "running",
};
export const HELLO: ToPanel = {
  type: "hello",
  situation: { server: { phase: "ready" }, trusted: true, model: "openai/lab", mode: "act", folder: true },
  words: undefined,
  locale: "en",
};

export let root: HTMLElement;
let store: InstanceType<typeof Store>;
export const tell = (message: ToPanel) =>
  act(async () => {
    store.receive(message);
    await vi.advanceTimersByTimeAsync(100);
  });
export const pass = (ms: number) =>
  act(async () => {
    await vi.advanceTimersByTimeAsync(ms);
  });
export const show = (chunks: readonly Chunk[], working = true) =>
  tell({ type: "session", session: SESSION, chunks, working });
export const find = <T extends HTMLElement>(selector: string): T => {
  const found = root.querySelector<T>(selector);
  if (!found) throw new Error(`no ${selector} in ${root.innerHTML.slice(0, 2000)}`);
  return found;
};
export const button = (name: string) => {
  const found = [...root.querySelectorAll("button")].find(
    (one) => (one.getAttribute("aria-label") ?? one.textContent) === name,
  );
  if (!found) throw new Error(`no button "${name}"`);
  return found;
};
export const click = (element: HTMLElement) => act(async () => element.click());
export const press = (element: HTMLElement, key: string, over: KeyboardEventInit = {}) =>
  act(async () => {
    element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...over }));
  });
export const type = (element: HTMLTextAreaElement, value: string) =>
  act(async () => {
    element.value = value;
    element.selectionStart = value.length;
    element.dispatchEvent(new Event("input", { bubbles: true }));
  });

/** Draws the panel before each test, and takes it away after it. */
export function drawPanel(): void {
  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
    root = document.body.appendChild(document.createElement("div"));
    const draw = () => render(<App state={store.state} store={store} />, root);
    store = new Store(draw);
    posted.length = 0;
    kept = undefined;
    await tell(HELLO);
  });
  afterEach(() => {
    render(null, root);
    root.remove();
    vi.useRealTimers();
  });
}

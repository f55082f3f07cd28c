// Messages to the extension host, and the state that outlives a hidden panel.

import type { FromPanel } from "../../src/pure/chat/panel";

interface HostApi<State> {
  postMessage(message: FromPanel): void;
  getState(): State | undefined;
  setState(state: State): void;
}

declare function acquireVsCodeApi<State>(): HostApi<State>;

/** What outlives the panel while it is hidden: a message that was not sent yet. */
interface SavedState {
  draft: string;
  /** What was sent, the newest first. */
  said?: readonly string[];
}

const host: HostApi<SavedState> | undefined =
  typeof acquireVsCodeApi === "function" ? acquireVsCodeApi<SavedState>() : undefined;

export const post = (message: FromPanel): void => host?.postMessage(message);
export const savedState = (): SavedState => host?.getState() ?? { draft: "" };
export const saveState = (state: SavedState): void => host?.setState(state);

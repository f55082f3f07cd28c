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

/** Sends a message to the extension host. */
export const post = (message: FromPanel): void => host?.postMessage(message);
/** What was saved last; empty at first. */
export const savedState = (): SavedState => host?.getState() ?? { draft: "" };
/** Saves what is to outlive a hidden panel. */
export const saveState = (state: SavedState): void => host?.setState(state);

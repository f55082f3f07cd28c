// The one door to the extension host.

import type { FromPanel } from "../../src/pure/chat/panel";

interface HostApi<State> {
  postMessage(message: FromPanel): void;
  getState(): State | undefined;
  setState(state: State): void;
}

declare function acquireVsCodeApi<State>(): HostApi<State>;

/** What outlives the panel while it is hidden: a message that was not sent yet. */
interface Kept {
  draft: string;
  /** What was sent, the newest first. */
  said?: readonly string[];
}

const host: HostApi<Kept> | undefined = typeof acquireVsCodeApi === "function" ? acquireVsCodeApi<Kept>() : undefined;

export const post = (message: FromPanel): void => host?.postMessage(message);
export const kept = (): Kept => host?.getState() ?? { draft: "" };
export const keep = (state: Kept): void => host?.setState(state);

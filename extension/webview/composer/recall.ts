// What was sent before, brought back into the composer by the arrow keys.

import { useState } from "preact/hooks";
import { savedState, saveState } from "../base/api";

const MOST_REMEMBERED = 50;

/** Remembers what was sent, for this chat and others, and empties the draft. */
export function remember(text: string): void {
  const former = savedState().said ?? [];
  saveState({ draft: "", said: [text, ...former.filter((one) => one !== text)].slice(0, MOST_REMEMBERED) });
}

/** `said`: what was sent in this chat, the newest first; after it comes what was sent in others. */
export function useRecall(said: readonly string[], text: string, setText: (text: string) => void) {
  const [back, setBack] = useState(-1);
  return {
    /** Starts anew from the newest. */
    reset: () => setBack(-1),
    /** Only from an empty box, or from what was brought back and not changed since; answers whether it did. */
    recall: (by: 1 | -1): boolean => {
      const former = [...new Set([...said, ...(savedState().said ?? [])])];
      const untouched = back < 0 ? text === "" : text === former[back];
      const next = back + by;
      if (!untouched || next < -1 || next >= former.length) return false;
      setBack(next);
      setText(former[next] ?? "");
      return true;
    },
  };
}

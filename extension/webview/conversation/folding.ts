// Which nested runs are unfolded: those at work, and those that the person opened.

import { useEffect, useState } from "preact/hooks";
import type { HandoffItem, Item } from "../../src/pure/view/items";
import { onReveal } from "../base/reveal";

interface Folding {
  isOpen: (child: string) => boolean;
  toggle: (child: string) => void;
  /** The items that are to be seen. */
  visible: readonly Item[];
}

/** Hides the items of folded runs, except those that the person must see. */
export function useFolding(items: readonly Item[]): Folding {
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const nested = new Map<string, HandoffItem>();
  for (const item of items) if (item.kind === "handoff" && item.child) nested.set(item.child, item);
  const isOpen = (child: string): boolean => chosen.get(child) ?? nested.get(child)?.result === undefined;
  const folded = (run: string): boolean => {
    const within = nested.get(run);
    return within !== undefined && (!isOpen(run) || folded(within.run));
  };
  useEffect(
    () =>
      onReveal((callId) => {
        const run = items.find((item) => item.kind === "tool" && item.id === callId)?.run;
        const open = new Map(chosen);
        for (let at = run; at && nested.has(at); at = nested.get(at)?.run) open.set(at, true);
        setChosen(open);
      }),
    [items, chosen],
  );
  return {
    isOpen,
    toggle: (child) => setChosen(new Map([...chosen, [child, !isOpen(child)]])),
    visible: items.filter((item) => (!folded(item.run) && !quiet(item)) || always(item)),
  };
}

const quiet = (item: Item): boolean => item.kind === "text" && item.quiet === true;

/** What the person must see wherever it comes from: what asks, and the plan. */
function always(item: Item): boolean {
  if (item.kind === "approval") return !item.decision;
  if (item.kind === "question") return item.answer === undefined && !item.expired;
  return item.kind === "plan" || item.kind === "error" || (item.kind === "handoff" && item.report !== undefined);
}

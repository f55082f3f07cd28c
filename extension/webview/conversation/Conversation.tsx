// The conversation: its items from oldest to newest, what is under way, and the way back to the end.

import { useMemo } from "preact/hooks";
import type { Item } from "../../src/pure/view/items";
import { proofsIn } from "../../src/pure/view/proofs";
import { type View, waiting } from "../../src/pure/view/view";
import { IconButton } from "../base/parts";
import { t } from "../base/words";
import { ItemView } from "../items/Items";
import { Announcer } from "./Announcer";
import { Busy } from "./Busy";
import { useFolding } from "./folding";
import { useScrolling } from "./scrolling";

interface Props {
  view: View;
  working: boolean;
  session: string;
  /** So many chunks of the session were not fetched yet. */
  earlier: number;
  /** How many messages were sent since the panel was drawn. */
  sent: number;
  echo: string | undefined;
  focus: number;
}

export function Conversation({ view, working, session, earlier, sent, echo, focus }: Props) {
  const { items } = view;
  const { visible, isOpen, toggle } = useFolding(items);
  const head = items[0]?.key ?? 0;
  const { list, from, away, onScroll, toEnd } = useScrolling({ total: visible.length, head, earlier, sent });
  const first = useMemo(() => waiting(view)[0]?.key, [items]);
  // The failure with which the newest request ended: it can be made once more.
  const failed = !working && view.run?.status === "failed" && view.run.repeatable ? view.run.id : undefined;
  const end = failed && items.findLast((item) => item.kind === "error");
  const around = {
    ...{ proofs: proofsIn(items), working, isOpen, toggle },
    diffOf: (checkpoint: string) => diffIn(items, checkpoint),
  };
  return (
    <div class="conversation">
      <div
        ref={list}
        class="items"
        role="log"
        aria-label={t("Conversation")}
        aria-live="off"
        tabindex={0}
        onScroll={onScroll}
      >
        <Earlier hidden={from} left={earlier} />
        {visible.slice(from).map((item) => (
          <ItemView
            key={item.key}
            item={item}
            undone={view.undone.gone}
            redo={item.kind === "restored" ? view.undone.redo : undefined}
            session={session}
            focus={item.key === first ? focus : 0}
            again={item === end ? failed : undefined}
            {...(item.kind === "plan" || item.kind === "handoff" ? { around } : {})}
          />
        ))}
        {echo && <Echo text={echo} />}
        {working && <Busy view={view} />}
      </div>
      {away && <IconButton icon="arrow-down" class="to-end" label={t("Scroll to Bottom")} onClick={toEnd} />}
      <Announcer items={items} working={working} />
    </div>
  );
}

/** What lies before the first item that is drawn: items that are here, or parts that are not fetched yet. */
function Earlier({ hidden, left }: { hidden: number; left: number }) {
  if (hidden > 0) return <p class="dim earlier">{t("{0} earlier entries", hidden)}</p>;
  return left > 0 ? <p class="dim earlier">{t("Scroll up to load earlier messages.")}</p> : null;
}

/** What was said, until the run that it starts is seen. */
const Echo = ({ text }: { text: string }) => (
  <div class="item item-user">
    <div class="bubble">
      <div class="said">{text}</div>
    </div>
  </div>
);

function diffIn(items: readonly Item[], checkpoint: string): string | undefined {
  const edits = items.flatMap((item) => (item.kind === "tool" ? item.edits : item.kind === "edit" ? [item.edit] : []));
  return edits.find(({ checkpointId }) => checkpointId === checkpoint)?.diff;
}

// One item of the conversation, each kind as a component of its own.

import type { ComponentChild } from "preact";
import { memo } from "preact/compat";
import type { Chunk, ChunkType } from "../../src/contract.gen";
import { fillFields } from "../../src/pure/text/words";
import type { ShownAsItCame } from "../../src/pure/view/folds";
import type { Item } from "../../src/pure/view/items";
import { Icon } from "../base/parts";
import { t } from "../base/words";
import { PlanCard } from "../plan/Plan";
import { Answer, Compacted, Pruned, Thought } from "./Answers";
import { Approval } from "./Approval";
import { RestoredCard, ReviewLine } from "./Decisions";
import { End, Trouble } from "./Ends";
import { Handoff } from "./Handoff";
import { Lessons } from "./Lessons";
import { Question } from "./Question";
import type { Surroundings } from "./surroundings";
import { Todo } from "./Todo";
import { Edits, Tool } from "./Tool";
import { User } from "./User";

interface Props {
  item: Item;
  undone: ReadonlySet<string>;
  /** The checkpoint that brings back what was undone or rejected last. */
  redo: string | undefined;
  focus: number;
  /** The run that ended with this, whose request can be made once more. */
  again: string | undefined;
  session: string;
  /** What items need that speak of others: plans and nested runs. */
  around?: Surroundings;
}

export const ItemView = memo(({ item, undone, redo, focus, again, session, around }: Props) => (
  <div class={`item item-${item.kind}${item.depth ? ` depth-${item.depth}` : ""}`} data-key={item.key}>
    <Inner {...{ item, undone, redo, focus, again, session }} {...(around ? { around } : {})} />
  </div>
));

function Inner({ item, undone, redo, focus, again, session, around }: Props) {
  switch (item.kind) {
    case "user":
      return <User item={item} session={session} />;
    case "text":
      return <Answer item={item} session={session} />;
    case "thinking":
      return <Thought item={item} />;
    case "tool":
      return SHOWN_OTHERWISE.has(item.tool) && item.status !== "failed" ? null : <Tool item={item} undone={undone} />;
    case "approval":
      return <Approval item={item} focus={focus} />;
    case "question":
      return <Question item={item} focus={focus} />;
    case "edit":
      return <Edits edit={item.edit} undone={undone} />;
    case "plan":
      return around ? <PlanCard plan={item.plan} proofs={around.proofs} working={around.working} /> : null;
    case "todo":
      return <Todo items={item.todo} />;
    case "lessons":
      return <Lessons item={item} />;
    case "handoff":
      return around ? <Handoff item={item} around={around} /> : null;
    case "restored":
      return <RestoredCard restored={item.restored} back={item.back} redo={redo} />;
    case "notice":
      return (
        <p class={`notice ${item.level}`}>
          <Icon name={NOTICE_ICONS[item.level]} />
          <span>{item.text}</span>
        </p>
      );
    case "error":
      return <Trouble {...item.error} {...(again ? { again } : {})} />;
    case "event":
      return <Look event={item.event} />;
    case "line":
      return (
        <p class="notice info">
          <Icon name={item.icon} />
          <span>{fillFields(t(item.text), item.fields)}</span>
        </p>
      );
    case "end":
      return <End item={item} undone={undone} />;
    default:
      return ((_unknown: never) => null)(item);
  }
}

/** Events that are shown as they came, each in a look of its own. */
type Looks<T extends ChunkType> = { [K in T]: (data: Extract<Chunk, { type: K }>["data"]) => ComponentChild };
const LOOKS: Looks<ShownAsItCame> = {
  compacted: (data) => <Compacted {...data} />,
  pruned: (data) => <Pruned {...data} />,
  review: (data) => <ReviewLine review={data} />,
};
const Look = ({ event }: { event: Chunk }) => (LOOKS as Looks<ChunkType>)[event.type](event.data as never);

/** Calls that have a card of their own. */
const SHOWN_OTHERWISE = new Set([
  "user/ask",
  "plan/propose",
  "plan/update_step",
  "plan/get",
  "agent/handoff",
  "todo/write",
]);

const NOTICE_ICONS = { info: "info", warning: "warning", error: "error" };

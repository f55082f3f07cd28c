// Nested runs in the view: their request and step, what they hand back, and what they changed.

import type { Edit, Envelope, HandoffEnd, RunStarted } from "../../contract.gen";
import { editsOf } from "../chat/undoState";
import { change, type Draft, findLast } from "./draft";
import type { EndItem, HandoffItem, Item, TextItem } from "./items";

/** A nested run begins with what it was given: its words, and for which step it works. */
export function describeNested(draft: Draft, run: string, { brief, told }: RunStarted): void {
  const n = brief?.plan?.steps.findIndex(({ stepId }) => stepId === brief.stepId) ?? -1;
  const step = n < 0 ? undefined : { n: n + 1, name: brief?.plan?.steps[n]?.name ?? "" };
  const child = (item: Item): item is HandoffItem => item.kind === "handoff" && item.child === run;
  change(draft, child, (item) => ({ ...item, ...(told ? { request: told } : {}), ...(step ? { step } : {}) }));
}

/** A nested run has handed back its result. */
export function closeHandoff(draft: Draft, { to, run, result, problem, handover }: HandoffEnd): void {
  const opened = (item: Item): item is HandoffItem =>
    item.kind === "handoff" && item.to === to && item.child === run && item.result === undefined;
  change(draft, opened, (item) => ({
    ...item,
    result,
    ...(problem ? { problem } : {}),
    ...(handover?.kind === "report" ? { report: handover.report } : {}),
  }));
}

/** The team's own words: not needed where they announce a call or repeat the plan, short where a report has said them. */
export function teamWords(draft: Draft, { agent, run }: Envelope, text: string, calls: boolean): Partial<TextItem> {
  const plan = draft.items[findLast(draft, ({ kind }) => kind === "plan")];
  if (agent === "planner") return plan?.kind === "plan" && text && text === plan.plan.summary ? { quiet: true } : {};
  if (agent !== "team") return {};
  if (calls) return { quiet: true };
  const reported = draft.items.some((item) => item.kind === "handoff" && item.run === run && item.report);
  return reported && plan?.kind === "plan" && plan.plan.status === "completed" ? { folded: true } : {};
}

/** What a run that the person started has changed: where undoing it all begins, and how many files. */
export function changesOf(draft: Draft): EndItem["changed"] {
  const start = findLast(draft, (item) => item.kind === "user" && !item.steering);
  const edits = draft.items
    .slice(start + 1)
    .flatMap((item) => (item.kind === "tool" ? item.edits : item.kind === "edit" ? [item.edit] : []));
  const place = new Map(editsOf(draft.undone).map((checkpoint, n) => [checkpoint, n]));
  const placeOf = (edit: Edit) => place.get(edit.checkpointId) ?? -1;
  const standing = edits
    .filter(({ checkpointId }) => checkpointId && !draft.undone.gone.has(checkpointId))
    .sort((a, b) => placeOf(a) - placeOf(b));
  const [first] = standing;
  if (!first) return undefined;
  const files = new Set(standing.flatMap((edit) => edit.files.map(({ path }) => path))).size;
  return { checkpointId: first.checkpointId, files };
}

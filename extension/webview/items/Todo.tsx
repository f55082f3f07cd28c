// The model's own list of what is to do: compact, one card a run, changed in place.

import { useState } from "preact/hooks";
import type { TodoItem } from "../../src/contract.gen";
import { Card, Icon } from "../base/parts";
import { t } from "../base/words";

const ICONS: Record<TodoItem["status"], string> = {
  pending: "circle-large-outline",
  in_progress: "arrow-circle-right",
  completed: "pass-filled",
};
const words = (): Record<TodoItem["status"], string> => ({
  pending: t("pending"),
  in_progress: t("in progress"),
  completed: t("done"),
});

export function Todo({ items }: { items: readonly TodoItem[] }) {
  const [open, setOpen] = useState(true);
  const done = items.filter(({ status }) => status === "completed").length;
  const now = items.find(({ status }) => status === "in_progress");
  if (!items.length) return null;
  return (
    <Card kind="plan todo" label={t("To-do list")}>
      <button type="button" class="plan-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="checklist" />
        <strong>{(!open && now?.title) || t("To-do list")}</strong>
        <span class="dim">
          {done}/{items.length}
        </span>
        <Icon name={open ? "chevron-up" : "chevron-down"} />
      </button>
      {open && (
        <ol>
          {items.map((item, at) => (
            <li key={at} class={item.status} aria-current={item.status === "in_progress" ? "step" : undefined}>
              <span class="status" role="img" aria-label={words()[item.status]} title={words()[item.status]}>
                <Icon name={ICONS[item.status]} />
              </span>
              <div>
                <span class="step-name">{item.title}</span>
              </div>
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}

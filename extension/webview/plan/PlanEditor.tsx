// The steps of a plan as text to be changed: names, checks, order; saved as a whole.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Plan, StepInput } from "../../src/contract.gen";
import { IconButton } from "../base/parts";
import { t } from "../base/words";

interface Row {
  key: number;
  step: StepInput;
  /** One check a line. */
  checks: string;
}

interface Props {
  plan: Plan;
  onSave: (steps: readonly StepInput[]) => void;
  onCancel: () => void;
}

let serial = 0;
const rowOf = (step: StepInput): Row => ({ key: ++serial, step, checks: (step.acceptance ?? []).join("\n") });

export function PlanEditor({ plan, onSave, onCancel }: Props) {
  const { list, rows, set, move, add, remove } = useRows(plan);
  const save = () => onSave(stepsOf(rows));
  const onKeyDown = (event: KeyboardEvent, at: number) => {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.key === "Escape") onCancel();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
    else if (event.altKey && event.key === "ArrowUp") move(at, -1);
    else if (event.altKey && event.key === "ArrowDown") move(at, 1);
    else return;
    event.preventDefault();
  };
  return (
    // No form: a webview may submit none.
    <section class="plan-editor" aria-label={t("Edit Plan")}>
      <ol ref={list}>
        {rows.map((row, n) => (
          <li key={row.key}>
            <Fields row={row} n={n} onChange={(change) => set(n, change)} onKeyDown={(event) => onKeyDown(event, n)} />
            <Moves n={n} last={n === rows.length - 1} {...{ move, add, remove }} />
          </li>
        ))}
      </ol>
      <div class="buttons">
        <button type="button" class="primary" onClick={save}>
          {t("Save")}
        </button>
        <button type="button" class="secondary" onClick={onCancel}>
          {t("Cancel")}
        </button>
        <button type="button" class="link" onClick={() => add(rows.length - 1)}>
          {t("Add Step")}
        </button>
      </div>
      <p class="keys dim">
        <kbd>Ctrl+Enter</kbd> {t("save")} <kbd>Alt+↑↓</kbd> {t("move")} <kbd>Esc</kbd> {t("cancel")}
      </p>
    </section>
  );
}

/** The rows while they are edited; the one that a change is about gets the focus. */
function useRows(plan: Plan) {
  const [rows, setRows] = useState(() => plan.steps.map(rowOf));
  const list = useRef<HTMLOListElement>(null);
  const [focus, setFocus] = useState(rows[0]?.key);
  const focusRow = (key: number | undefined) =>
    list.current?.querySelector<HTMLElement>(`[data-row="${key}"]`)?.focus();
  useEffect(() => focusRow(focus), [focus]);
  return {
    list,
    rows,
    set: (at: number, change: Partial<Row>) => setRows(rows.map((row, n) => (n === at ? { ...row, ...change } : row))),
    move: (at: number, by: number) => {
      const to = at + by;
      const row = rows[at];
      if (!row || to < 0 || to >= rows.length) return;
      const rest = rows.filter((_, n) => n !== at);
      setRows([...rest.slice(0, to), row, ...rest.slice(to)]);
      requestAnimationFrame(() => focusRow(row.key));
    },
    add: (at: number) => {
      const row = rowOf({ name: "" });
      setRows([...rows.slice(0, at + 1), row, ...rows.slice(at + 1)]);
      setFocus(row.key);
    },
    remove: (at: number) => {
      const rest = withoutRow(rows, at);
      setRows(rest);
      setFocus((rest[at] ?? rest.at(-1))?.key);
    },
  };
}

/** What waited for the step that is gone waits for what that one waited for. */
function withoutRow(rows: readonly Row[], at: number): Row[] {
  const gone = rows[at]?.step.stepId;
  const before = rows[at]?.step.dependsOn ?? [];
  const waits = (ids: readonly string[] = []) => [
    ...new Set(ids.flatMap((id) => (id === gone && gone ? before : [id]))),
  ];
  return rows
    .filter((_, n) => n !== at)
    .map((row) => ({ ...row, step: { ...row.step, dependsOn: waits(row.step.dependsOn) } }));
}

/** A step without a name is left out. */
const stepsOf = (rows: readonly Row[]): StepInput[] =>
  rows
    .filter(({ step }) => step.name.trim())
    .map(({ step, checks }) => ({
      ...step,
      name: step.name.trim(),
      acceptance: checks
        .split("\n")
        .map((check) => check.trim())
        .filter(Boolean),
    }));

interface FieldsProps {
  row: Row;
  n: number;
  onChange: (change: Partial<Row>) => void;
  onKeyDown: (event: KeyboardEvent) => void;
}

const Fields = ({ row, n, onChange, onKeyDown }: FieldsProps) => (
  <div class="plan-fields">
    <input
      type="text"
      data-row={row.key}
      value={row.step.name}
      aria-label={t("Step {0}", n + 1)}
      placeholder={t("Describe the step")}
      onInput={(event) => onChange({ step: { ...row.step, name: event.currentTarget.value } })}
      onKeyDown={onKeyDown}
    />
    <textarea
      rows={Math.max(1, row.checks.split("\n").length)}
      value={row.checks}
      aria-label={t("Checks for step {0}, one per line", n + 1)}
      placeholder={t("Checks: a command or diagnostics: path")}
      onInput={(event) => onChange({ checks: event.currentTarget.value })}
      onKeyDown={onKeyDown}
    />
  </div>
);

interface MovesProps {
  n: number;
  last: boolean;
  move: (at: number, by: number) => void;
  add: (at: number) => void;
  remove: (at: number) => void;
}

const Moves = ({ n, last, move, add, remove }: MovesProps) => (
  <div class="plan-moves">
    <IconButton icon="arrow-up" label={t("Move Step {0} Up", n + 1)} disabled={n === 0} onClick={() => move(n, -1)} />
    <IconButton icon="arrow-down" label={t("Move Step {0} Down", n + 1)} disabled={last} onClick={() => move(n, 1)} />
    <IconButton icon="add" label={t("Add Step After Step {0}", n + 1)} onClick={() => add(n)} />
    <IconButton icon="trash" label={t("Remove Step {0}", n + 1)} onClick={() => remove(n)} />
  </div>
);

// A plan as a card: its steps with their checks, the button that starts it, and its editor.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Plan, Step, StepInput } from "../../src/contract.gen";
import { doneOf } from "../../src/pure/chat/steps";
import { type CommandResult, isDiagnostics, normalizeCommand } from "../../src/pure/view/proofs";
import { post } from "../base/api";
import { Card, Icon } from "../base/parts";
import { reveal } from "../base/reveal";
import { t } from "../base/words";
import { PlanEditor } from "./PlanEditor";

/** What a command last showed, by its plain form. */
export type Proofs = ReadonlyMap<string, CommandResult>;

const STEP_ICONS: Record<Step["status"], string> = {
  pending: "circle-large-outline",
  in_progress: "loading",
  completed: "pass-filled",
  failed: "error",
};
const stepWords = (): Record<Step["status"], string> => ({
  pending: t("pending"),
  in_progress: t("in progress"),
  completed: t("done"),
  failed: t("failed"),
});
const planWords = (): Record<Plan["status"], string> => ({
  draft: t("waiting for your approval"),
  approved: t("approved"),
  in_progress: t("in progress"),
  completed: t("done"),
  failed: t("failed"),
});

export function PlanCard({ plan, proofs, working }: { plan: Plan; proofs: Proofs; working: boolean }) {
  const [open, setOpen] = useState(true);
  const [editing, setEditing] = useState(false);
  const editButton = useRef<HTMLButtonElement>(null);
  const wasEditing = useRef(false);
  useEffect(() => {
    // The focus goes back to where it came from.
    if (wasEditing.current && !editing) editButton.current?.focus();
    wasEditing.current = editing;
  }, [editing]);
  const left = plan.steps.some(({ status }) => status !== "completed");
  const save = (steps: readonly StepInput[]) => {
    post({ type: "planUpdate", planId: plan.planId, steps });
    setEditing(false);
  };
  return (
    <Card kind="plan" label={t("Plan")}>
      <button type="button" class="plan-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="checklist" />
        <strong>{plan.name || plan.goal}</strong>
        <span class="dim">
          {doneOf(plan)}/{plan.steps.length}
        </span>
        <span class={`badge plan-${plan.status}`}>{planWords()[plan.status]}</span>
        <Icon name={open ? "chevron-up" : "chevron-down"} />
      </button>
      {open && plan.summary && <p class="dim plan-summary">{plan.summary}</p>}
      {open && editing && <PlanEditor plan={plan} onSave={save} onCancel={() => setEditing(false)} />}
      {open && !editing && (
        <ol>
          {plan.steps.map((step) => (
            <StepRow key={step.stepId} step={step} proofs={proofs} />
          ))}
        </ol>
      )}
      {open && !editing && left && !working && (
        <div class="buttons">
          <button type="button" class="primary" onClick={() => post({ type: "planStart", planId: plan.planId })}>
            {plan.status === "draft" ? t("Approve and Start") : t("Continue Plan")}
          </button>
          <button ref={editButton} type="button" class="secondary" onClick={() => setEditing(true)}>
            {t("Edit Plan")}
          </button>
        </div>
      )}
    </Card>
  );
}

function StepRow({ step, proofs }: { step: Step; proofs: Proofs }) {
  const words = stepWords()[step.status];
  return (
    <li class={step.status} aria-current={step.status === "in_progress" ? "step" : undefined}>
      <span class="status" role="img" aria-label={words} title={words}>
        <Icon name={STEP_ICONS[step.status]} spin={step.status === "in_progress"} />
      </span>
      <div>
        <span class="step-name">{step.name}</span>
        {step.description && step.description !== step.name && <span class="dim block">{step.description}</span>}
        {step.acceptance.length > 0 && (
          <ul class="checks" aria-label={t("Checks")}>
            {step.acceptance.map((check) => (
              <Check key={check} check={check} done={step.status === "completed"} proofs={proofs} />
            ))}
          </ul>
        )}
      </div>
    </li>
  );
}

/** What must hold, and the command's exit code that shows whether it does: a click leads there. */
function Check({ check, done, proofs }: { check: string; done: boolean; proofs: Proofs }) {
  const last = isDiagnostics(check) ? undefined : proofs.get(normalizeCommand(check));
  // What was shown before the files changed proves nothing, unless it was what the step was done by.
  const shown = last && (!last.stale || done) ? last : undefined;
  const passed = shown ? shown.exitCode === 0 : done;
  const words = shown
    ? t("exit code {0}", shown.exitCode)
    : done
      ? t("passed")
      : last
        ? t("files have changed since")
        : t("not checked yet");
  const face = passed ? "pass" : shown ? "error" : "beaker";
  return (
    <li class={`check ${passed ? "ok" : shown ? "failed" : ""}`}>
      <Icon name={face} />
      <code>{check}</code>
      {shown ? (
        <button type="button" class="link inline" onClick={() => reveal(shown.callId)}>
          {words}
        </button>
      ) : (
        <span class="dim">{words}</span>
      )}
    </li>
  );
}

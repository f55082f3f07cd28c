// Changes of a plan's steps: each function answers with the new list.

import type { Plan, Step, StepInput } from "../../contract.gen";

/** The steps with one of them replaced; its checks and its progress stay unless they are given. */
export const withStep = (plan: Plan, stepId: string, change: Partial<StepInput>): StepInput[] =>
  plan.steps.map((step) => (step.stepId === stepId ? { ...step, ...change } : step));

/** A step more, after the one that is named, else at the end. */
export function withNewStep(plan: Plan, step: StepInput, afterId?: string): StepInput[] {
  const at = plan.steps.findIndex(({ stepId }) => stepId === afterId);
  const steps: StepInput[] = [...plan.steps];
  steps.splice(at < 0 ? steps.length : at + 1, 0, step);
  return steps;
}

/** Without a step; what waited for it waits for what it waited for. */
export function withoutStep(plan: Plan, gone: string): StepInput[] {
  const before = plan.steps.find(({ stepId }) => stepId === gone)?.dependsOn ?? [];
  return plan.steps
    .filter(({ stepId }) => stepId !== gone)
    .map((step) => ({
      ...step,
      dependsOn: [...new Set(step.dependsOn.flatMap((id) => (id === gone ? before : [id])))],
    }));
}

/** A step at another place, `by` places down (below zero: up). */
export function withMoved(plan: Plan, stepId: string, by: number): StepInput[] {
  const from = plan.steps.findIndex((step) => step.stepId === stepId);
  const moved = plan.steps[from];
  if (!moved) return [...plan.steps];
  const steps: Step[] = plan.steps.filter((step) => step !== moved);
  steps.splice(Math.min(steps.length, Math.max(0, from + by)), 0, moved);
  return steps;
}

/** The first step that could be worked at: not done, and what it waits for is done. */
export function nextStep(plan: Plan): Step | undefined {
  const done = new Set(plan.steps.filter(({ status }) => status === "completed").map(({ stepId }) => stepId));
  return plan.steps.find(({ status, dependsOn }) => status !== "completed" && dependsOn.every((id) => done.has(id)));
}

/** How many steps of a plan are completed. */
export const doneOf = (plan: Plan): number => plan.steps.filter(({ status }) => status === "completed").length;

/** A step dragged to the place of another one, or to the end. */
export function withDragged(plan: Plan, stepId: string, before: string | undefined): StepInput[] {
  const from = plan.steps.findIndex((step) => step.stepId === stepId);
  const to = before === undefined ? plan.steps.length : plan.steps.findIndex((step) => step.stepId === before);
  return withMoved(plan, stepId, to - from - (to > from ? 1 : 0));
}

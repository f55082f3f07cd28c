// What a person does with a plan: approve it, start it, change its steps, carry it as Markdown.

import * as vscode from "vscode";
import type { App } from "../app";
import type { Plan, Step, StepInput } from "../contract.gen";
import { currentEditor } from "../editor/context";
import { t } from "../l10n";
import { nextStep, withMoved, withNewStep, withoutStep, withStep } from "../pure/chat/steps";
import { request } from "../server/rpc";
import { byKey, focusedIn } from "../trees/focused";
import type { PlanNode, PlanTree } from "../trees/plan";

type Table = Record<string, (argument?: unknown) => unknown>;

export function planCommands(parts: App): Table {
  const { plans } = parts;
  /** What a menu hands over, else what has the focus in the tree or is selected there. */
  const meant = async (argument: unknown): Promise<PlanNode | undefined> =>
    nodeOf(argument) ?? (byKey(argument) ? await focusedIn(plans.view) : plans.view.selection[0]);
  const onStep =
    (act: (plan: Plan, step: Step) => unknown) =>
    async (argument?: unknown): Promise<unknown> => {
      const node = await meant(argument);
      const step = plans.plan?.steps.find(({ stepId }) => stepId === node?.step.stepId);
      return plans.plan && step && act(plans.plan, step);
    };
  const move = (by: number) =>
    onStep(async (plan, step) => {
      await change(parts, plan, withMoved(plan, step.stepId, by));
      await show(plans, step.stepId);
    });
  return {
    "daiku.plan.start": (argument) => start(parts, planIn(argument) ?? plans.plan?.planId),
    "daiku.plan.runNext": (argument) => runNext(parts, nodeOf(argument)),
    "daiku.plan.edit": async (argument) => edit(parts, await meant(argument)),
    "daiku.plan.addStep": async (argument) => {
      const plan = plans.plan;
      const node = await meant(argument);
      const name = plan && (await ask(t("New step"), t("What is to be done?")));
      if (!plan || !name) return;
      await change(parts, plan, withNewStep(plan, { name }, node?.step.stepId));
    },
    "daiku.plan.addCheck": onStep(async (plan, step) => {
      const check = await ask(step.name, CHECK());
      if (check) await change(parts, plan, withStep(plan, step.stepId, { acceptance: [...step.acceptance, check] }));
    }),
    "daiku.plan.remove": async (argument) => {
      const plan = plans.plan;
      const node = await meant(argument);
      if (!plan || !node) return;
      if (node.kind === "step") return change(parts, plan, withoutStep(plan, node.step.stepId));
      if (node.kind !== "check") return;
      const acceptance = node.step.acceptance.filter((check) => check !== node.check);
      await change(parts, plan, withStep(plan, node.step.stepId, { acceptance }));
    },
    "daiku.plan.moveUp": move(-1),
    "daiku.plan.moveDown": move(1),
    "daiku.plan.export": async () => {
      const planId = plans.plan?.planId;
      if (!planId) return;
      const { text } = await request(await parts.server.client(), "daiku/plan/export", { planId });
      const document = await vscode.workspace.openTextDocument({ language: "markdown", content: text });
      await vscode.window.showTextDocument(document, { preview: false });
    },
    "daiku.plan.import": () => importPlan(parts),
  };
}

const CHECK = () => t("A command that must succeed, or: diagnostics: path");

const nodeOf = (argument: unknown): PlanNode | undefined =>
  typeof argument === "object" && argument !== null && "kind" in argument && "step" in argument
    ? (argument as PlanNode)
    : undefined;
const planIn = (argument: unknown): string | undefined =>
  typeof argument === "object" && argument !== null && "planId" in argument ? String(argument.planId) : undefined;

const ask = async (title: string, prompt: string, value = ""): Promise<string | undefined> =>
  (await vscode.window.showInputBox({ title, prompt, value, ignoreFocusOut: true }))?.trim();

/** Steps dragged in the tree. */
export function dropped(plan: Plan, step: Step, before: Step | undefined): StepInput[] {
  const from = plan.steps.findIndex(({ stepId }) => stepId === step.stepId);
  const to = before ? plan.steps.findIndex(({ stepId }) => stepId === before.stepId) : plan.steps.length;
  return withMoved(plan, step.stepId, to - from - (to > from ? 1 : 0));
}

export async function change({ server, chat }: Pick<App, "server" | "chat">, plan: Plan, steps: StepInput[]) {
  await request(await server.client(), "daiku/plan/update", { planId: plan.planId, steps });
  await chat.catchUp();
}

/** The text in place; the panel edits with this too. */
async function edit(parts: App, node: PlanNode | undefined): Promise<void> {
  const plan = parts.plans.plan;
  if (!plan || !node) return;
  const { step } = node;
  if (node.kind === "check") {
    const text = await ask(step.name, CHECK(), node.check);
    if (!text || text === node.check) return;
    const acceptance = step.acceptance.map((check) => (check === node.check ? text : check));
    return change(parts, plan, withStep(plan, step.stepId, { acceptance }));
  }
  if (node.kind !== "step") return;
  const name = await ask(t("Step {0}", node.n), t("What is to be done?"), step.name);
  if (!name) return;
  const details = await ask(t("Step {0}", node.n), t("Details (may stay empty)"), step.description);
  const description = details ?? step.description;
  if (name === step.name && description === step.description) return;
  await change(parts, plan, withStep(plan, step.stepId, { name, description }));
}

async function show(plans: PlanTree, stepId: string): Promise<void> {
  const n = plans.plan?.steps.findIndex((step) => step.stepId === stepId) ?? -1;
  const step = plans.plan?.steps[n];
  if (plans.plan && step)
    await plans.view.reveal({ kind: "step", plan: plans.plan, step, n: n + 1 }, { select: true, focus: true });
}

/** Lets the team work: at the whole plan, or at one step of it. */
async function start(parts: App, planId: string | undefined, stepId?: string): Promise<void> {
  const { chat, panel } = parts;
  if (!planId) return void vscode.window.showInformationMessage(t("There is no plan in this chat yet."));
  if (chat.working) return void vscode.window.showInformationMessage(t("Something is under way in this chat already."));
  await panel.reveal();
  // Whoever starts it approves of it.
  await chat.start("daiku/plan/run", { planId, ...(stepId ? { stepId } : {}) });
}

/** The step that was pointed at, else the next one that can be worked at. */
function runNext(parts: App, node: PlanNode | undefined): Promise<void> {
  const { plan } = parts.plans;
  const step = node?.kind === "step" ? node.step : plan && nextStep(plan);
  if (plan && step) return start(parts, plan.planId, step.stepId);
  void vscode.window.showInformationMessage(t("No step is left to be worked at."));
  return Promise.resolve();
}

/** From the Markdown that is open, else from a file that the person chooses. */
async function importPlan({ server, chat }: App): Promise<void> {
  const open = currentEditor()?.document;
  const markdown =
    open && /^\s*[-*] \[[ xX]\]/m.test(open.getText()) && open.languageId === "markdown"
      ? open.getText()
      : await chosenFile();
  if (!markdown) return;
  const client = await server.client();
  const sessionId = chat.current ?? (await request(client, "daiku/session/new", {})).sessionId;
  await request(client, "daiku/plan/import", { markdown, sessionId });
  if (sessionId === chat.current) await chat.catchUp();
  else await chat.open(sessionId);
  await vscode.commands.executeCommand("daiku.plan.focus");
}

async function chosenFile(): Promise<string | undefined> {
  const [file] =
    (await vscode.window.showOpenDialog({
      title: t("A plan as a Markdown checklist"),
      filters: { Markdown: ["md", "markdown"] },
      openLabel: t("Import"),
    })) ?? [];
  return file && (await vscode.workspace.openTextDocument(file)).getText();
}

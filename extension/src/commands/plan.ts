// Commands for the open chat's plan: start it, change its steps, import and export it as Markdown.

import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import type { Panel } from "../chat/panel";
import type { Plan, Step, StepInput } from "../contract.gen";
import { currentEditor } from "../editor/context";
import { t } from "../l10n";
import { nextStep, withMoved, withNewStep, withoutStep, withStep } from "../pure/chat/steps";
import { request } from "../server/rpc";
import type { Server } from "../server/server";
import { isFromKey, selectFocused } from "../trees/focus";
import type { PlanNode, PlanTree } from "../trees/plan";
import type { CommandTable } from "./table";

export interface PlanParts {
  server: Pick<Server, "client">;
  chat: Pick<Chat, "current" | "working" | "start" | "open" | "catchUp">;
  panel: Pick<Panel, "reveal">;
  plans: PlanTree;
}

/** The commands for the plan, by their ids. */
export const planCommands = (parts: PlanParts): CommandTable => ({
  ...stepCommands(parts),
  "daiku.plan.start": (argument) => start(parts, planIn(argument) ?? parts.plans.plan?.planId),
  "daiku.plan.runNext": (argument) => runNext(parts, nodeIn(argument)),
  "daiku.plan.export": async () => {
    const planId = parts.plans.plan?.planId;
    if (!planId) return;
    const { text } = await request(await parts.server.client(), "daiku/plan/export", { planId });
    const document = await vscode.workspace.openTextDocument({ language: "markdown", content: text });
    await vscode.window.showTextDocument(document, { preview: false });
  },
  "daiku.plan.import": () => importPlan(parts),
});

/** Commands that change single steps. */
function stepCommands(parts: PlanParts): CommandTable {
  const { plans } = parts;
  const onStep =
    (act: (plan: Plan, step: Step) => unknown) =>
    async (argument?: unknown): Promise<unknown> => {
      const node = await nodeOf(plans, argument);
      const step = plans.plan?.steps.find(({ stepId }) => stepId === node?.step.stepId);
      return plans.plan && step && act(plans.plan, step);
    };
  const move = (by: number) =>
    onStep(async (plan, step) => {
      await updateSteps(parts, plan, withMoved(plan, step.stepId, by));
      await select(plans, step.stepId);
    });
  return {
    "daiku.plan.edit": async (argument) => edit(parts, await nodeOf(plans, argument)),
    "daiku.plan.addStep": async (argument) => {
      const plan = plans.plan;
      const node = await nodeOf(plans, argument);
      const name = plan && (await ask(t("New step"), t("Describe the step")));
      if (plan && name) await updateSteps(parts, plan, withNewStep(plan, { name }, node?.step.stepId));
    },
    "daiku.plan.addCheck": onStep(async (plan, step) => {
      const check = await ask(step.name, CHECK());
      if (!check) return;
      await updateSteps(parts, plan, withStep(plan, step.stepId, { acceptance: [...step.acceptance, check] }));
    }),
    "daiku.plan.remove": async (argument) => remove(parts, await nodeOf(plans, argument)),
    "daiku.plan.moveUp": move(-1),
    "daiku.plan.moveDown": move(1),
  };
}

const CHECK = () => t("Enter a command that must succeed, or diagnostics: path");

/** What a menu hands over, else what has the focus in the tree or is selected there. */
const nodeOf = async ({ view }: PlanTree, argument: unknown): Promise<PlanNode | undefined> =>
  nodeIn(argument) ?? (isFromKey(argument) ? await selectFocused(view) : view.selection[0]);

const nodeIn = (argument: unknown): PlanNode | undefined =>
  typeof argument === "object" && argument !== null && "kind" in argument && "step" in argument
    ? (argument as PlanNode)
    : undefined;
const planIn = (argument: unknown): string | undefined =>
  typeof argument === "object" && argument !== null && "planId" in argument ? String(argument.planId) : undefined;

const ask = async (title: string, prompt: string, value = ""): Promise<string | undefined> =>
  (await vscode.window.showInputBox({ title, prompt, value, ignoreFocusOut: true }))?.trim();

/** Has the server keep these steps, and fetches the plan as it is then. */
export async function updateSteps(
  { server, chat }: { server: Pick<Server, "client">; chat: Pick<Chat, "catchUp"> },
  { planId }: Plan,
  steps: StepInput[],
): Promise<void> {
  await request(await server.client(), "daiku/plan/update", { planId, steps });
  await chat.catchUp();
}

async function remove(parts: PlanParts, node: PlanNode | undefined): Promise<void> {
  const plan = parts.plans.plan;
  if (!plan || !node) return;
  const { stepId, acceptance } = node.step;
  if (node.kind === "step") return updateSteps(parts, plan, withoutStep(plan, stepId));
  if (node.kind !== "check") return;
  const left = acceptance.filter((check) => check !== node.check);
  await updateSteps(parts, plan, withStep(plan, stepId, { acceptance: left }));
}

/** The text in place; the panel edits with this too. */
async function edit(parts: PlanParts, node: PlanNode | undefined): Promise<void> {
  const plan = parts.plans.plan;
  if (!plan || !node) return;
  const { step } = node;
  if (node.kind === "check") {
    const text = await ask(step.name, CHECK(), node.check);
    if (!text || text === node.check) return;
    const acceptance = step.acceptance.map((check) => (check === node.check ? text : check));
    return updateSteps(parts, plan, withStep(plan, step.stepId, { acceptance }));
  }
  if (node.kind !== "step") return;
  const name = await ask(t("Step {0}", node.n), t("Describe the step"), step.name);
  if (!name) return;
  const details = await ask(t("Step {0}", node.n), t("Details (optional)"), step.description);
  const description = details ?? step.description;
  if (name === step.name && description === step.description) return;
  await updateSteps(parts, plan, withStep(plan, step.stepId, { name, description }));
}

async function select({ plan, view }: PlanTree, stepId: string): Promise<void> {
  const n = plan?.steps.findIndex((step) => step.stepId === stepId) ?? -1;
  const step = plan?.steps[n];
  if (plan && step) await view.reveal({ kind: "step", plan, step, n: n + 1 }, { select: true, focus: true });
}

/** Lets the team work: at the whole plan, or at one step of it. */
async function start({ chat, panel }: PlanParts, planId: string | undefined, stepId?: string): Promise<void> {
  if (!planId) return void vscode.window.showInformationMessage(t("This chat has no plan yet."));
  if (chat.working) return void vscode.window.showInformationMessage(t("A run is already in progress in this chat."));
  await panel.reveal();
  // Whoever starts it approves of it.
  await chat.start("daiku/plan/run", { planId, ...(stepId ? { stepId } : {}) });
}

/** The step that was pointed at, else the next one that can be worked at. */
function runNext(parts: PlanParts, node: PlanNode | undefined): Promise<void> {
  const { plan } = parts.plans;
  const step = node?.kind === "step" ? node.step : plan && nextStep(plan);
  if (plan && step) return start(parts, plan.planId, step.stepId);
  void vscode.window.showInformationMessage(t("The plan has no steps left to run."));
  return Promise.resolve();
}

/** From the Markdown that is open, else from a file that the person chooses. */
async function importPlan({ server, chat }: PlanParts): Promise<void> {
  const open = currentEditor()?.document;
  const markdown =
    open && /^\s*[-*] \[[ xX]\]/m.test(open.getText()) && open.languageId === "markdown"
      ? open.getText()
      : await chooseFile();
  if (!markdown) return;
  const client = await server.client();
  const sessionId = chat.current ?? (await request(client, "daiku/session/new", {})).sessionId;
  await request(client, "daiku/plan/import", { markdown, sessionId });
  if (sessionId === chat.current) await chat.catchUp();
  else await chat.open(sessionId);
  await vscode.commands.executeCommand("daiku.plan.focus");
}

async function chooseFile(): Promise<string | undefined> {
  const [file] =
    (await vscode.window.showOpenDialog({
      title: t("Import plan from a Markdown checklist"),
      filters: { Markdown: ["md", "markdown"] },
      openLabel: t("Import"),
    })) ?? [];
  return file && (await vscode.workspace.openTextDocument(file)).getText();
}

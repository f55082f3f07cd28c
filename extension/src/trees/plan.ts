// The tree "Plan": the newest plan of the open chat, its steps, and the acceptance checks of each.

import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import type { Plan, Step, Task } from "../contract.gen";
import { t } from "../l10n";
import { plansOf } from "../pure/chat/conversation";
import { doneOf, nextStep } from "../pure/chat/steps";
import { type CommandResult, isDiagnostics, normalizeCommand, proofsOf } from "../pure/view/proofs";

const PLAN_VIEW = "daiku.plan";

export type PlanNode =
  | { kind: "step"; plan: Plan; step: Step; n: number }
  | { kind: "check"; step: Step; check: string }
  | { kind: "task"; step: Step; task: Task };

export interface PlanTree extends vscode.Disposable {
  readonly plan: Plan | undefined;
  readonly view: vscode.TreeView<PlanNode>;
}

const statusWords = (): Record<Step["status"], string> => ({
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
const ICONS: Record<Step["status"], [icon: string, color?: string]> = {
  pending: ["circle-large-outline"],
  in_progress: ["sync~spin", "charts.blue"],
  completed: ["pass-filled", "testing.iconPassed"],
  failed: ["error", "testing.iconFailed"],
};

const icon = ([id, color]: [string, string?]) =>
  new vscode.ThemeIcon(id, color ? new vscode.ThemeColor(color) : undefined);
const context = (key: string, value: unknown) => void vscode.commands.executeCommand("setContext", key, value);

type Move = (plan: Plan, step: Step, before: Step | undefined) => unknown;
type Followed = Pick<Chat, "chunks" | "onChunks">;

/** `move`: a step was dragged to the place of another one, or to the end. */
export const createPlanTree = (chat: Followed, move: Move): PlanTree => new ChatPlanTree(chat, move);

const MIME = "application/vnd.code.tree.daiku.plan";

class ChatPlanTree implements PlanTree, vscode.TreeDataProvider<PlanNode>, vscode.TreeDragAndDropController<PlanNode> {
  readonly dragMimeTypes = [MIME];
  readonly dropMimeTypes = [MIME];
  readonly view: vscode.TreeView<PlanNode>;
  readonly #changed = new vscode.EventEmitter<undefined>();
  readonly #chat: Followed;
  readonly #move: Move;
  readonly #following: vscode.Disposable;
  #plan: Plan | undefined;
  #proofs: ReadonlyMap<string, CommandResult> = new Map();

  constructor(chat: Followed, move: Move) {
    this.#chat = chat;
    this.#move = move;
    this.view = vscode.window.createTreeView(PLAN_VIEW, {
      ...{ treeDataProvider: this, dragAndDropController: this, showCollapseAll: true },
    });
    this.#following = chat.onChunks((chunks) => {
      const all = chunks[0]?.seq === chat.chunks[0]?.seq;
      const shows = chunks.some(({ type }) => type === "plan" || type === "edit" || type === "tool_response");
      if (all || shows) this.#draw();
    });
    this.#draw();
  }

  get plan() {
    return this.#plan;
  }
  get onDidChangeTreeData() {
    return this.#changed.event;
  }

  getTreeItem(node: PlanNode) {
    return item(node, this.#proofs);
  }

  getChildren(node?: PlanNode): PlanNode[] {
    const plan = this.#plan;
    if (!plan) return [];
    if (!node) return plan.steps.map((step, n) => ({ kind: "step", plan, step, n: n + 1 }));
    return node.kind === "step" ? partsOf(node.step) : [];
  }

  getParent(node: PlanNode): PlanNode | undefined {
    const plan = this.#plan;
    if (!plan || node.kind === "step") return undefined;
    return { kind: "step", plan, step: node.step, n: plan.steps.indexOf(node.step) + 1 };
  }

  handleDrag([node]: readonly PlanNode[], data: vscode.DataTransfer): void {
    if (node?.kind === "step") data.set(MIME, new vscode.DataTransferItem(node.step.stepId));
  }

  handleDrop(target: PlanNode | undefined, data: vscode.DataTransfer): void {
    const plan = this.#plan;
    const step = plan?.steps.find(({ stepId }) => stepId === data.get(MIME)?.value);
    if (plan && step && step !== target?.step) this.#move(plan, step, target?.step);
  }

  dispose(): void {
    vscode.Disposable.from(this.view, this.#following, this.#changed).dispose();
  }

  #draw(): void {
    const plan = plansOf(this.#chat.chunks).at(-1);
    this.#plan = plan;
    this.#proofs = plan ? proofsOf(this.#chat.chunks) : new Map();
    this.view.description = plan ? `${doneOf(plan)}/${plan.steps.length} · ${planWords()[plan.status]}` : "";
    this.view.message = plan ? plan.name || plan.goal : "";
    context("daiku.plan", plan?.status ?? false);
    context("daiku.planNext", plan !== undefined && nextStep(plan) !== undefined);
    this.#changed.fire(undefined);
  }
}

const partsOf = (step: Step): PlanNode[] => [
  ...step.acceptance.map((check): PlanNode => ({ kind: "check", step, check })),
  ...step.taskList.map((task): PlanNode => ({ kind: "task", step, task })),
];

function item(node: PlanNode, proofs: ReadonlyMap<string, CommandResult>): vscode.TreeItem {
  if (node.kind === "step") return stepItem(node);
  if (node.kind === "check") return checkItem(node.step, node.check, proofs);
  const { task, step } = node;
  const made = new vscode.TreeItem(task.operation);
  made.id = `${step.stepId}/${task.taskId}`;
  made.iconPath = icon(ICONS[task.status]);
  made.description = statusWords()[task.status];
  made.tooltip = task.result ?? JSON.stringify(task.args);
  made.contextValue = "task";
  return made;
}

function stepItem({ plan, step, n }: Extract<PlanNode, { kind: "step" }>): vscode.TreeItem {
  const parts = step.acceptance.length + step.taskList.length;
  const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const made = new vscode.TreeItem(`${n}. ${step.name}`, parts === 0 ? None : n <= 9 ? Expanded : Collapsed);
  const words = statusWords()[step.status];
  made.id = step.stepId;
  made.description = step.status === "pending" ? "" : words;
  made.iconPath = icon(ICONS[step.status]);
  made.contextValue = `step.${step.status}`;
  const waits = step.dependsOn
    .map((id) => plan.steps.find(({ stepId }) => stepId === id)?.name)
    .filter((name) => name !== undefined);
  const lines = [step.description, waits.length ? t("Depends on: {0}", waits.join(", ")) : ""].filter(Boolean);
  made.tooltip = [`${step.name} (${words})`, ...lines].join("\n\n");
  made.accessibilityInformation = { label: [t("Step {0}", n), step.name, words, ...lines].join(", ") };
  return made;
}

function checkItem(step: Step, check: string, proofs: ReadonlyMap<string, CommandResult>): vscode.TreeItem {
  const made = new vscode.TreeItem(check);
  const shown = isDiagnostics(check) ? undefined : proofs.get(normalizeCommand(check));
  const settled = shown !== undefined && (!shown.stale || step.status === "completed");
  const passed = settled ? shown.exitCode === 0 : step.status === "completed";
  const words = settled
    ? t("exit code {0}", shown.exitCode)
    : passed
      ? t("passed")
      : shown
        ? t("files have changed since")
        : t("not checked yet");
  made.id = `${step.stepId}/${check}`;
  made.description = words;
  made.iconPath = passed
    ? icon(["pass", "testing.iconPassed"])
    : settled
      ? icon(["error", "testing.iconFailed"])
      : icon(["beaker"]);
  made.contextValue = "check";
  made.tooltip = t("Required to complete this step: {0}", check);
  made.accessibilityInformation = { label: `${t("Check")}: ${check}, ${words}` };
  return made;
}

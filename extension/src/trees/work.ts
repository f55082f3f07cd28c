// The tree "Work": the items that workers work, have worked or are to work, by state, as the server tells of them.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { WorkItem, WorkWatchResult } from "../contract.gen";
import { t } from "../l10n";
import { ago, dollars, tokens } from "../pure/text/format";
import { failureOf, failureWords, request } from "../server/rpc";
import { type Served, WatchedView } from "./watched";

const WORK_VIEW = "daiku.work";

type State = WorkItem["state"];
export type WorkNode = { kind: "state"; state: State } | { kind: "item"; item: WorkItem };

/** What a person is wanted for comes first, what is over last. */
const ORDER: readonly State[] = ["waiting", "processing", "paused", "queued", "failed", "dead", "stopped", "done"];
const FOLDED = new Set<State>(["stopped", "done"]);

const ICONS: Record<State, [icon: string, color?: string]> = {
  waiting: ["question", "list.warningForeground"],
  processing: ["sync~spin", "charts.blue"],
  paused: ["debug-pause"],
  queued: ["circle-large-outline"],
  failed: ["error", "testing.iconFailed"],
  dead: ["error", "testing.iconFailed"],
  stopped: ["circle-slash"],
  done: ["pass-filled", "testing.iconPassed"],
};
/** Icon of work that a limit ended: it can be reviewed and is not whole. */
const UNFINISHED: [icon: string, color?: string] = ["warning", "list.warningForeground"];
const stateWords = (): Record<State, string> => ({
  waiting: t("Waiting for an answer"),
  processing: t("In progress"),
  paused: t("Paused"),
  queued: t("Queued"),
  failed: t("Failed"),
  dead: t("Abandoned"),
  stopped: t("Canceled"),
  done: t("Done"),
});
const wantedWords = (): Record<WorkItem["wanted"], string> => ({
  "": "",
  pause: t("pausing at the next step"),
  cancel: t("canceling at the next step"),
});

export interface WorkTree extends vscode.Disposable {
  readonly view: vscode.TreeView<WorkNode>;
  readonly items: readonly WorkItem[];
  /** The items are others, or one at work has said something. */
  readonly onItems: vscode.Event<readonly WorkItem[]>;
  /** Asks for the items anew, if somebody looks at them. */
  refresh(): void;
}

/** Shows the tree of work items while somebody looks at it. */
export const createWorkTree = (server: Served): WorkTree => new ServedWorkTree(server);

class ServedWorkTree implements WorkTree, vscode.TreeDataProvider<WorkNode> {
  readonly view: vscode.TreeView<WorkNode>;
  readonly #changed = new vscode.EventEmitter<undefined>();
  readonly #told = new vscode.EventEmitter<readonly WorkItem[]>();
  readonly #server: Served;
  readonly #watched: WatchedView;
  #revision = "";
  #items: readonly WorkItem[] = [];

  constructor(server: Served) {
    this.#server = server;
    this.view = vscode.window.createTreeView<WorkNode>(WORK_VIEW, { treeDataProvider: this, showCollapseAll: true });
    this.#watched = new WatchedView(
      this.view,
      server,
      (client, token) => this.#ask(client, token),
      (error) => this.#fail(error),
    );
  }

  get items() {
    return this.#items;
  }
  get onItems() {
    return this.#told.event;
  }
  get onDidChangeTreeData() {
    return this.#changed.event;
  }

  refresh() {
    this.#revision = "";
    if (this.#watched.seen) void this.#watched.follow();
  }

  getChildren(node?: WorkNode): WorkNode[] {
    if (!node)
      return ORDER.filter((state) => this.#items.some((item) => item.state === state)).map((state) => ({
        ...{ kind: "state", state },
      }));
    if (node.kind === "item") return [];
    return this.#items.filter(({ state }) => state === node.state).map((item) => ({ kind: "item", item }));
  }

  getParent(node: WorkNode): WorkNode | undefined {
    return node.kind === "item" ? { kind: "state", state: node.item.state } : undefined;
  }

  getTreeItem(node: WorkNode): vscode.TreeItem {
    if (node.kind === "item") return itemRow(node);
    return stateRow(node.state, this.#items.filter(({ state }) => state === node.state).length);
  }

  dispose() {
    vscode.Disposable.from(this.#watched, this.view, this.#changed, this.#told).dispose();
  }

  async #ask(client: LanguageClient, token: vscode.CancellationToken): Promise<void> {
    const told = await request(client, "daiku/work/watch", { revision: this.#revision }, token);
    if (!token.isCancellationRequested) this.#draw(told);
  }

  #fail(error: unknown): void {
    const failure = failureOf(error);
    if (failure && this.#server.running()) this.view.message = failureWords(failure);
  }

  #draw({ revision, items }: WorkWatchResult): void {
    const same = JSON.stringify(items) === JSON.stringify(this.#items) && this.#revision !== "";
    this.#revision = revision;
    this.#items = items;
    const waiting = items.filter(({ state }) => state === "waiting").length;
    this.view.badge = waiting
      ? { value: waiting, tooltip: t("Work items waiting for an answer: {0}", waiting) }
      : undefined;
    this.view.message = "";
    void vscode.commands.executeCommand("setContext", "daiku.workKnown", true);
    if (!same) this.#changed.fire(undefined);
    this.#told.fire(items);
  }
}

function stateRow(state: State, count: number): vscode.TreeItem {
  const { Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const made = new vscode.TreeItem(stateWords()[state], FOLDED.has(state) ? Collapsed : Expanded);
  made.id = state;
  made.description = String(count);
  made.contextValue = "state";
  made.accessibilityInformation = { label: `${stateWords()[state]}: ${count}` };
  return made;
}

function itemRow(node: Extract<WorkNode, { kind: "item" }>): vscode.TreeItem {
  const { item } = node;
  const made = new vscode.TreeItem(item.title || item.item);
  const [icon, color] = item.state === "done" && item.error ? UNFINISHED : ICONS[item.state];
  const short = [wantedWords()[item.wanted], progressOf(item), item.error.split("\n")[0] ?? "", ...factsOf(item)];
  const state = stateWords()[item.state];
  made.id = item.item;
  made.description = short.filter(Boolean).join(" · ");
  made.iconPath = new vscode.ThemeIcon(icon, color ? new vscode.ThemeColor(color) : undefined);
  made.contextValue = contextOf(item);
  made.tooltip = linesOf(item).filter(Boolean).join("\n");
  made.accessibilityInformation = { label: [item.title, state, ...short].filter(Boolean).join(", ") };
  made.command = { command: "daiku.work.open", title: t("Open Chat"), arguments: [node] };
  return made;
}

/** What can be done with the item, for the menus. */
const contextOf = ({ state, wanted, sessionId, url, requestUrl }: WorkItem): string =>
  [wanted ? "work.asked" : `work.${state}`, sessionId && "chat", url && "page", requestUrl && "request"]
    .filter(Boolean)
    .join("+");

const progressOf = ({ state, progress }: WorkItem): string =>
  progress && state !== "done" ? `${progress.done}/${progress.total} ${progress.step}`.trim() : "";

/** `group/name#3`, or the name of a file. */
const nameOf = ({ item }: WorkItem): string => item.slice(item.indexOf(":") + 1);

/** `#7` on GitHub, `!7` on GitLab: the end of its address. */
function requestOf({ item, requestUrl }: WorkItem): string {
  const number = /\/(\d+)\/?$/.exec(requestUrl)?.[1];
  return number ? t("request {0}", `${item.startsWith("gitlab:") ? "!" : "#"}${number}`) : "";
}

const factsOf = (item: WorkItem): string[] => [
  // The branch of a file has its name.
  item.item.startsWith("files:") && item.branch ? "" : nameOf(item),
  requestOf(item),
  item.branch,
  item.attempts > 1 ? t("attempt {0}", item.attempts) : "",
];

/** What its runs used of models, and what that cost where the price is known. */
function usedOf({ usage }: WorkItem): string {
  if (!usage) return "";
  const used = t("{0} tokens", tokens(usage.promptTokens + usage.completionTokens));
  return t("Usage: {0}", usage.cost === undefined ? used : `${used} · ${dollars(usage.cost)}`);
}

const linesOf = (item: WorkItem): string[] => [
  item.title,
  [stateWords()[item.state], wantedWords()[item.wanted]].filter(Boolean).join(", "),
  item.error,
  "",
  item.item,
  item.progress ? t("Steps completed: {0}", `${item.progress.done}/${item.progress.total}`) : "",
  item.branch ? t("Branch: {0}", item.branch) : "",
  item.requestUrl ? t("Pull or merge request: {0}", item.requestUrl) : "",
  item.attempts ? t("Attempts: {0}", item.attempts) : "",
  usedOf(item),
  t("Last updated: {0}", ago(item.updatedAt, vscode.env.language, t("now"))),
];

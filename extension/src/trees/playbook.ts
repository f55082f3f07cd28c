// The tree "Playbook": lessons by section, what waits for a person on top of them, kept as new as the server says.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { PlaybookWatchResult, ShownDelta } from "../contract.gen";
import { t } from "../l10n";
import { failureOf, failureWords, request } from "../server/rpc";
import {
  factsOf,
  failedRow,
  idOf,
  type Lesson,
  type NodeOf,
  type PlaybookNode,
  rowOf,
  waitingWords,
} from "./playbookRows";
import { sectionKey } from "./playbookWords";
import { type Served, WatchedView } from "./watched";

const PLAYBOOK_VIEW = "daiku.playbook";
/** Of what was decided, the newest. */
const MOST_PAST = 100;

/** What is known of the playbooks, for the words of an empty view. */
type Known = "unknown" | "asking" | "known" | "failed";

export interface PlaybookTree extends vscode.Disposable {
  readonly view: vscode.TreeView<PlaybookNode>;
  /** The changes that wait for a person, as they are drawn. */
  readonly waiting: readonly PlaybookNode[];
  /** What stands first in it. */
  readonly top: PlaybookNode | undefined;
  /** The lesson with this id, as it is drawn. */
  lesson(id: string): PlaybookNode | undefined;
  /** Brings a node into sight, selected and with the focus; one that is not drawn now stays out of it. */
  show(node: PlaybookNode | undefined, expand?: boolean): Promise<void>;
  /** Shows only what is like these words; none: everything. */
  search(query: string): Promise<void>;
  /** Asks for everything anew; drawn when it is answered. */
  refresh(): Promise<void>;
  /** A run has ended and may have taught something: what waits is counted, also where nobody looks. */
  expect(): void;
  /** The server has told what there is now: what runs taught stands in their conversations. */
  readonly onTold: vscode.Event<void>;
}

/** Shows the tree of lessons while somebody looks at it. */
export const createPlaybookTree = (server: Served): PlaybookTree => new ServedPlaybookTree(server);

class ServedPlaybookTree implements PlaybookTree, vscode.TreeDataProvider<PlaybookNode> {
  readonly view: vscode.TreeView<PlaybookNode>;
  readonly #changed = new vscode.EventEmitter<undefined>();
  readonly #told = new vscode.EventEmitter<void>();
  readonly #server: Served;
  readonly #watched: WatchedView;
  #revision = "";
  #query = "";
  #roots: readonly PlaybookNode[] = [];
  #waiting: NodeOf<"waiting"> = { kind: "waiting", proposals: [] };
  #known: Known = "unknown";

  constructor(server: Served) {
    this.#server = server;
    this.view = vscode.window.createTreeView<PlaybookNode>(PLAYBOOK_VIEW, {
      treeDataProvider: this,
      showCollapseAll: true,
    });
    this.#watched = new WatchedView(
      this.view,
      server,
      (client, token) => this.#ask(client, token),
      (error) => this.#fail(error),
    );
  }

  get waiting() {
    return this.getLoaded(this.#waiting);
  }
  get top() {
    return this.#roots[0];
  }
  get onTold() {
    return this.#told.event;
  }
  get onDidChangeTreeData() {
    return this.#changed.event;
  }

  lesson(id: string): PlaybookNode | undefined {
    const all = this.#roots.flatMap((root) => (root.kind === "lesson" ? [root] : this.getLoaded(root)));
    return all.find((node) => node.kind === "lesson" && node.lesson.bullet.id === id);
  }

  async show(node: PlaybookNode | undefined, expand = false): Promise<void> {
    const top = node && topOf(node);
    if (!node || !this.#roots.some((root) => top && idOf(root) === idOf(top))) return;
    await this.view.reveal(node, { select: true, focus: true, expand });
  }

  async search(query: string): Promise<void> {
    this.#query = query.trim();
    void vscode.commands.executeCommand("setContext", "daiku.playbookSearched", this.#query !== "");
    await this.refresh();
  }

  async refresh(): Promise<void> {
    const client = this.#server.running();
    if (!client) return;
    try {
      await this.#take(client, await request(client, "daiku/playbook/watch", { revision: "" }));
    } catch (error) {
      return this.#fail(error);
    }
    if (this.#watched.seen) void this.#watched.follow();
  }

  expect(): void {
    // What there is, and what comes soon.
    if (!this.#watched.seen) void this.#watched.follow(2);
  }

  getChildren(node?: PlaybookNode): PlaybookNode[] | Promise<PlaybookNode[]> {
    if (!node) return [...this.#roots];
    return node.kind === "lesson" || node.kind === "past" ? this.#askedOf(node) : this.getLoaded(node);
  }

  /** The children that the server is asked for when somebody unfolds them. */
  async #askedOf(node: NodeOf<"lesson"> | NodeOf<"past">): Promise<PlaybookNode[]> {
    const client = this.#server.running();
    if (!client) return [];
    try {
      return await (node.kind === "lesson" ? this.#historyOf(client, node) : this.#pastOf(client, node));
    } catch (error) {
      const failure = failureOf(error);
      return failure ? [failedRow(node, failureWords(failure))] : [];
    }
  }

  /** The children that need no asking. */
  getLoaded(parent: PlaybookNode): PlaybookNode[] {
    switch (parent.kind) {
      case "waiting":
        return parent.proposals.map((shown) => ({ kind: "change", parent, shown }));
      case "section":
        return parent.lessons.map((lesson) => ({ kind: "lesson", parent, lesson }));
      case "change":
        return factsOf(parent);
      default:
        return [];
    }
  }

  getParent = ({ parent }: PlaybookNode): PlaybookNode | undefined => parent;
  getTreeItem = (node: PlaybookNode): vscode.TreeItem => rowOf(node);

  dispose() {
    vscode.Disposable.from(this.#watched, this.view, this.#changed, this.#told).dispose();
  }

  async #ask(client: LanguageClient, token: vscode.CancellationToken): Promise<void> {
    if (this.#known === "unknown") this.#tell("asking");
    const before = this.#known === "known" ? this.#revision : "";
    const told = await request(client, "daiku/playbook/watch", { revision: before }, token);
    if (token.isCancellationRequested) return;
    this.#told.fire();
    if (told.revision !== before) await this.#take(client, told);
  }

  /** Asks for what there is at this revision, and draws it. */
  async #take(client: LanguageClient, { revision, repository }: PlaybookWatchResult): Promise<void> {
    const query = this.#query;
    const [lessons, { deltas }] = await Promise.all([
      query ? found(client, query) : listed(client, repository),
      request(client, "daiku/playbook/deltas", {}),
    ]);
    if (query !== this.#query) return;
    this.#revision = revision;
    this.#draw(deltas, lessons);
  }

  #draw(waiting: readonly ShownDelta[], lessons: readonly Lesson[]): void {
    this.#waiting = { kind: "waiting", proposals: waiting };
    this.#roots = this.#query
      ? lessons.map((lesson) => ({ kind: "lesson", lesson }))
      : [
          ...(waiting.length ? [this.#waiting] : []),
          ...bySection(lessons),
          ...(lessons.length ? [{ kind: "past" } as const] : []),
        ];
    this.view.badge = waiting.length ? { value: waiting.length, tooltip: waitingWords(waiting.length) } : undefined;
    this.view.message = this.#query
      ? lessons.length
        ? t("Lessons similar to “{0}”", this.#query)
        : t("No lessons are similar to “{0}”.", this.#query)
      : vscode.workspace.isTrusted
        ? ""
        : t("This folder is not trusted. Only your personal lessons are shown.");
    this.#tell("known");
  }

  #fail(error: unknown): void {
    const failure = failureOf(error);
    if (!failure || !this.#server.running()) return;
    this.view.message = failureWords(failure);
    this.#tell("failed");
  }

  #tell(known: Known): void {
    this.#known = known;
    void vscode.commands.executeCommand("setContext", "daiku.playbookState", known);
    this.#changed.fire(undefined);
  }

  async #historyOf(client: LanguageClient, parent: NodeOf<"lesson">): Promise<PlaybookNode[]> {
    const { observations, history } = await request(client, "daiku/playbook/show", { id: parent.lesson.bullet.id });
    return [
      ...observations.map((observation) => ({ kind: "observation", parent, observation }) as const),
      ...[...history].reverse().map((shown) => ({ kind: "change", parent, shown }) as const),
    ];
  }

  async #pastOf(client: LanguageClient, parent: NodeOf<"past">): Promise<PlaybookNode[]> {
    const statuses: ShownDelta["status"][] = ["applied", "rejected", "undone"];
    const { deltas } = await request(client, "daiku/playbook/deltas", { statuses, newest: MOST_PAST });
    return [...deltas].reverse().map((shown) => ({ kind: "change", parent, shown }));
  }
}

const topOf = (node: PlaybookNode): PlaybookNode => (node.parent ? topOf(node.parent) : node);

/** All lessons, also those that are switched off: those of this folder before those of the person. */
async function listed(client: LanguageClient, repository: boolean): Promise<Lesson[]> {
  const scopes: Lesson["scope"][] = repository ? ["repository", "user"] : ["user"];
  const lists = scopes.map(async (scope) => {
    const { bullets, resting } = await request(client, "daiku/playbook/list", { scope, all: true });
    const rests = new Set(resting);
    return bullets.map((bullet) => ({ bullet, scope, resting: rests.has(bullet.id) }));
  });
  return (await Promise.all(lists)).flat();
}

/** The lessons that are like the words, the best first. */
async function found(client: LanguageClient, query: string): Promise<Lesson[]> {
  const [{ hits }, { bullets }] = await Promise.all([
    request(client, "daiku/playbook/search", { query }),
    request(client, "daiku/playbook/list", { scope: "user", all: true }),
  ]);
  const own = new Set(bullets.map(({ id }) => id));
  return hits.map(({ bullet, resting }) => ({
    ...{ bullet, resting },
    scope: own.has(bullet.id) ? "user" : "repository",
  }));
}

function bySection(lessons: readonly Lesson[]): PlaybookNode[] {
  const sections = new Map<string, Lesson[]>();
  for (const lesson of lessons) {
    const key = sectionKey(lesson.bullet.section);
    const members = sections.get(key);
    if (members) members.push(lesson);
    else sections.set(key, [lesson]);
  }
  return [...sections.values()].map((lessons) => ({
    ...{ kind: "section", section: lessons[0]?.bullet.section ?? "", lessons },
  }));
}

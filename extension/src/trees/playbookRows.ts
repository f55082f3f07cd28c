// The rows of the tree "Playbook": what waits for the person, lessons, what runs showed of them, and their changes.

import * as vscode from "vscode";
import type {
  PlaybookBullet as Bullet,
  BulletObservation,
  PlaybookDelta as Delta,
  PlaybookPlace,
  ShownDelta,
} from "../contract.gen";
import { t } from "../l10n";
import { changedLines } from "../pure/diff/lesson";
import { ago } from "../pure/text/format";
import {
  changeWords,
  countWords,
  doubtWords,
  reasonWords,
  sectionKey,
  sectionWords,
  statusWords,
  verdictWords,
} from "./playbookWords";

export interface Lesson {
  bullet: Bullet;
  scope: Delta["scope"];
  /** Known, and told to no run: what runs showed of it speaks against it. */
  resting: boolean;
}

type Of<K extends string, T = object> = T & { kind: K; parent?: PlaybookNode };
export type PlaybookNode =
  | Of<"waiting", { proposals: readonly ShownDelta[] }>
  | Of<"section", { section: string; lessons: readonly Lesson[] }>
  | Of<"lesson", { lesson: Lesson }>
  | Of<"past">
  /** A change that waits, or one that was decided. */
  | Of<"change", { shown: ShownDelta }>
  | Of<"observation", { observation: BulletObservation }>
  | Of<"place", { place: PlaybookPlace }>
  | Of<"fact", { id: string; text: string; icon: Icon; said?: string }>;

type Icon = [icon: string, color?: string];
export type NodeOf<K extends PlaybookNode["kind"]> = Extract<PlaybookNode, { kind: K }>;

const MARKS: Record<Delta["type"], Icon> = {
  add: ["diff-added", "gitDecoration.addedResourceForeground"],
  update: ["diff-modified", "gitDecoration.modifiedResourceForeground"],
  merge: ["git-merge", "gitDecoration.modifiedResourceForeground"],
  tag: ["tag", "gitDecoration.modifiedResourceForeground"],
  remove: ["diff-removed", "gitDecoration.deletedResourceForeground"],
  restore: ["debug-restart", "gitDecoration.addedResourceForeground"],
};
const VERDICTS: Record<BulletObservation["verdict"], Icon> = {
  helpful: ["thumbsup", "testing.iconPassed"],
  harmful: ["thumbsdown", "testing.iconFailed"],
  neutral: ["circle-outline"],
};
const LINES: Record<"add" | "del", Icon> = {
  add: ["add", "gitDecoration.addedResourceForeground"],
  del: ["remove", "gitDecoration.deletedResourceForeground"],
};
/** So many proposals show at once what speaks for them; of more a person looks at one after the other. */
const UNFOLDED = 3;

/** The id of a node in the tree: the same change may stand in it twice. */
export function idOf(node: PlaybookNode): string {
  const above = node.parent ? `${idOf(node.parent)}/` : "";
  switch (node.kind) {
    case "section":
      return `${above}section:${sectionKey(node.section)}`;
    case "lesson":
      return `${above}lesson:${node.lesson.bullet.id}`;
    case "change":
      return `${above}change:${node.shown.id}`;
    case "observation":
      return `${above}run:${node.observation.place.runId}`;
    case "place":
      return `${above}place:${node.place.sessionId}:${node.place.seq}`;
    case "fact":
      return `${above}fact:${node.id}`;
    default:
      return `${above}${node.kind}`;
  }
}

export function rowOf(node: PlaybookNode): vscode.TreeItem {
  const made = drawn(node);
  made.id = idOf(node);
  return made;
}

function drawn(node: PlaybookNode): vscode.TreeItem {
  switch (node.kind) {
    case "waiting":
      return waitingRow(node);
    case "section":
      return sectionRow(node);
    case "lesson":
      return lessonRow(node);
    case "past":
      return pastRow();
    case "change":
      return changeRow(node);
    case "observation":
      return observationRow(node);
    case "place":
      return placeRow(node);
    case "fact":
      return factRow(node);
  }
}

const iconOf = ([icon, color]: Icon): vscode.ThemeIcon =>
  new vscode.ThemeIcon(icon, color ? new vscode.ThemeColor(color) : undefined);

const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;

/** "3 lessons wait for you". */
export const waitingWords = (count: number): string =>
  count === 1 ? t("1 lesson to review") : t("{0} lessons to review", count);

function waitingRow({ proposals }: NodeOf<"waiting">): vscode.TreeItem {
  const made = new vscode.TreeItem(waitingWords(proposals.length), Expanded);
  made.iconPath = iconOf(["question", "list.warningForeground"]);
  made.contextValue = "waiting";
  made.tooltip = t(
    "Press Space to accept a lesson, F2 to edit and accept it, or Delete to reject it. Press Ctrl+Z to undo an accepted lesson.",
  );
  made.accessibilityInformation = { label: [made.label, made.tooltip].join(". ") };
  return made;
}

function sectionRow({ section, lessons }: NodeOf<"section">): vscode.TreeItem {
  const made = new vscode.TreeItem(sectionWords(section), Expanded);
  const inactive = lessons.filter(({ bullet }) => !bullet.active).length;
  made.description = [String(lessons.length), inactive ? t("{0} disabled", inactive) : ""].filter(Boolean).join(" · ");
  made.contextValue = "section";
  made.accessibilityInformation = { label: `${sectionWords(section)}: ${made.description}` };
  return made;
}

function lessonRow({ lesson }: NodeOf<"lesson">): vscode.TreeItem {
  const { bullet, resting } = lesson;
  const made = new vscode.TreeItem(labelOf(bullet), Collapsed);
  const states = statesOf(lesson);
  made.description = [...states, bullet.id].join(" · ");
  made.iconPath = iconOf(
    bullet.active
      ? resting
        ? ["debug-pause", "list.warningForeground"]
        : ["lightbulb"]
      : ["circle-slash", "disabledForeground"],
  );
  made.contextValue = `lesson.${bullet.active ? "active" : "inactive"}`;
  made.tooltip = lessonText(lesson);
  made.command = {
    command: "daiku.playbook.open",
    title: t("Open Lesson"),
    arguments: [{ kind: "lesson", lesson }],
  };
  made.accessibilityInformation = { label: [bullet.content, ...states, countWords(bullet), bullet.id].join(", ") };
  return made;
}

/** What runs showed stands in front: what is long is cut off at its end. */
const labelOf = (bullet: Bullet): string =>
  [bullet.helpful || bullet.harmful ? `+${bullet.helpful} −${bullet.harmful}` : "", firstLine(bullet.content)]
    .filter(Boolean)
    .join("  ");

const statesOf = ({ bullet, resting, scope }: Lesson): string[] =>
  [
    bullet.active ? "" : t("disabled"),
    bullet.active && resting ? t("suspended") : "",
    scope === "user" ? t("all folders") : "",
  ].filter(Boolean);

const firstLine = (text: string): string => {
  const [first = "", ...more] = text.trim().split("\n");
  return more.length ? `${first} …` : first;
};

/** All that is known of a lesson. */
export function lessonText({ bullet, resting, scope }: Lesson): string {
  const { active, keywords, origin, updatedAt, createdAt } = bullet;
  const lines = [
    bullet.content,
    "",
    `${bullet.id} · ${sectionWords(bullet.section)}`,
    countWords(bullet),
    active ? "" : t("Disabled: not used in any run."),
    active && resting ? t("Suspended: runs did worse with this lesson, so it is not used.") : "",
    scope === "user" ? t("Applies to all your folders.") : "",
    keywords.length ? t("Keywords: {0}", keywords.join(", ")) : "",
    originWords()[origin],
    updatedAt || createdAt ? t("Last updated: {0}", when(updatedAt || createdAt)) : "",
  ];
  return lines.filter((line, n) => line || n === 1).join("\n");
}

const originWords = (): Record<Bullet["origin"], string> => ({
  person: t("Written by a user."),
  rule: t("Extracted from a run by a rule."),
  model: t("Written by a model."),
  import: t("Imported from a file."),
});

const when = (time: string): string => ago(time, vscode.env.language, t("now"));

function pastRow(): vscode.TreeItem {
  const made = new vscode.TreeItem(t("History"), Collapsed);
  made.iconPath = iconOf(["history"]);
  made.contextValue = "past";
  return made;
}

function changeRow(node: NodeOf<"change">): vscode.TreeItem {
  const delta = node.shown;
  const waits = delta.status === "proposed";
  const text = firstLine(delta.content || delta.bullets[0]?.content || delta.bulletId);
  const words = changeWords(delta, node.parent?.kind === "lesson" ? node.parent.lesson.bullet.id : "");
  const at = delta.decidedAt || delta.createdAt;
  const made = new vscode.TreeItem(waits ? text : words, unfoldingOf(node));
  const doubts = delta.doubts.length;
  const said = waits
    ? [words, sectionOf(node.shown), doubts ? t("notes: {0}", doubts) : ""]
    : [statusWords()[delta.status], at ? when(at) : "", node.parent?.kind === "past" ? text : ""];
  made.description = said.filter(Boolean).join(" · ");
  made.iconPath = iconOf(MARKS[delta.type]);
  made.contextValue = `change.${delta.status}.${delta.type}`;
  made.tooltip = changeTooltip(node.shown);
  made.accessibilityInformation = { label: [made.label, ...said, reasonWords(delta.why)].filter(Boolean).join(", ") };
  made.command = { command: "daiku.playbook.diff", title: t("Open Diff"), arguments: [node] };
  return made;
}

function unfoldingOf(node: NodeOf<"change">): vscode.TreeItemCollapsibleState {
  if (factsOf(node).length === 0) return None;
  return node.parent?.kind === "waiting" && node.parent.proposals.length <= UNFOLDED ? Expanded : Collapsed;
}

function sectionOf({ section, bullets }: ShownDelta): string {
  const named = section || bullets[0]?.section;
  return named ? sectionWords(named) : "";
}

function changeTooltip({ diff, why, doubts }: ShownDelta): vscode.MarkdownString {
  const made = new vscode.MarkdownString();
  const lines = changedLines(diff).map(
    ({ kind, text }) => `${kind === "add" ? "+" : kind === "del" ? "-" : " "} ${text}`,
  );
  if (lines.length) made.appendCodeblock(lines.join("\n"), "diff");
  for (const line of [reasonWords(why), ...doubts.map((doubt) => doubtWords()[doubt])])
    if (line) made.appendText(`\n\n${line}`);
  return made;
}

function observationRow({ observation }: NodeOf<"observation">): vscode.TreeItem {
  const { verdict, why, place, counted } = observation;
  const made = new vscode.TreeItem(verdictWords()[verdict], None);
  const note = counted ? "" : t("for an earlier version, not counted");
  const said = [why ? reasonWords(why) : "", note, place.title].filter(Boolean);
  made.description = said.join(" · ");
  made.iconPath = iconOf(VERDICTS[verdict]);
  made.contextValue = "place";
  made.tooltip = t("Show in Chat");
  made.accessibilityInformation = { label: [made.label, ...said].join(", ") };
  if (place.sessionId) made.command = openPlace(place);
  return made;
}

function placeRow({ place }: NodeOf<"place">): vscode.TreeItem {
  const made = new vscode.TreeItem(place.title || t("Deleted chat"), None);
  made.description = `${t("source")} · #${place.seq}`;
  made.iconPath = iconOf(["comment-discussion"]);
  made.contextValue = "place";
  made.tooltip = t("Show in Chat");
  made.accessibilityInformation = { label: `${t("Learned in chat")}: ${place.title}` };
  made.command = openPlace(place);
  return made;
}

const openPlace = (place: PlaybookPlace): vscode.Command => ({
  command: "daiku.playbook.openPlace",
  title: t("Show in Chat"),
  arguments: [place],
});

function factRow({ text, icon, said }: NodeOf<"fact">): vscode.TreeItem {
  const made = new vscode.TreeItem(text, None);
  made.iconPath = iconOf(icon);
  made.contextValue = "fact";
  made.tooltip = text;
  made.accessibilityInformation = { label: said ? `${said}: ${text}` : text };
  return made;
}

/** What could not be asked for, and why. */
export const failedRow = (parent: PlaybookNode, text: string): PlaybookNode => ({
  ...{ kind: "fact", parent, id: "failure", text, icon: ["error", "list.errorForeground"] },
});

const sentence = (words: string): string => words.slice(0, 1).toLocaleUpperCase() + words.slice(1);

/** What a person needs to judge a change: its difference, why, what to know about it, where it was learnt. */
export function factsOf(node: NodeOf<"change">): PlaybookNode[] {
  const { status, type, diff, why, doubts, places } = node.shown;
  const changed = changedLines(diff).filter(({ kind, text }) => kind !== "same" && text.trim());
  // The row of a new lesson says its first line.
  const lines = status === "proposed" && type === "add" ? changed.slice(1) : changed;
  const fact = (id: string, text: string, icon: Icon, said: string): PlaybookNode => ({
    ...{ kind: "fact", parent: node, id, text, icon, said },
  });
  return [
    ...lines.map(({ kind, text }, n) =>
      kind === "del" ? fact(`line${n}`, text, LINES.del, t("Removed")) : fact(`line${n}`, text, LINES.add, t("Added")),
    ),
    ...(why ? [fact("why", sentence(reasonWords(why)), ["info"], t("Reason"))] : []),
    ...doubts.map((doubt) => fact(doubt, doubtWords()[doubt], ["warning", "list.warningForeground"], t("Note"))),
    ...places.map((place): PlaybookNode => ({ kind: "place", parent: node, place })),
  ];
}

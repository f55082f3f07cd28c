// What a person does with lessons: decide on what waits, reword, switch off and on, add; each by the server.

import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import type { Panel } from "../chat/panel";
import type { PlaybookDelta, PlaybookReviewParams, Requests } from "../contract.gen";
import { t } from "../l10n";
import type { LessonDiffs } from "../review/lessonDiff";
import { request } from "../server/rpc";
import type { Server } from "../server/server";
import type { PlaybookTree } from "../trees/playbook";
import type { Lesson, PlaybookNode } from "../trees/playbookRows";
import { sectionWords } from "../trees/playbookWords";

export interface PlaybookParts {
  server: Pick<Server, "client">;
  chat: Pick<Chat, "current" | "open" | "chunks">;
  panel: Pick<Panel, "reveal" | "post">;
  playbook: PlaybookTree;
  lessonDiffs: LessonDiffs;
}

/** What an act changed. */
export type Changed = Promise<readonly PlaybookDelta[]>;
type Scope = PlaybookDelta["scope"];
/** Stands for the end of a line in a box that has one line. */
const LINE_END = " ⏎ ";

/** Has the server decide, draws what became of it, and says what could not be done. */
export async function review({ server, playbook, lessonDiffs }: PlaybookParts, wanted: PlaybookReviewParams): Changed {
  const { decided, refused, redacted } = await request(await server.client(), "daiku/playbook/review", wanted);
  for (const { id } of decided) await lessonDiffs.close(id);
  await playbook.refresh();
  if (redacted) sayRedacted();
  if (refused.length) void vscode.window.showWarningMessage(refused.map(({ message }) => message).join(" "));
  return decided;
}

const sayRedacted = () => void vscode.window.showWarningMessage(t("Secrets were removed from the text."));

/** Decides on a proposal, and goes on to the next one; after the last to what became of it. */
async function decide(
  parts: PlaybookParts,
  node: PlaybookNode,
  wanted: (id: string) => PlaybookReviewParams,
  words: string,
): Changed {
  if (node.kind !== "change" || node.shown.status !== "proposed") return [];
  const { playbook } = parts;
  const { id } = node.shown;
  const at = playbook.waiting.findIndex((one) => one.kind === "change" && one.shown.id === id);
  const decided = await review(parts, wanted(id));
  const [done] = decided;
  if (!done) return [];
  vscode.window.setStatusBarMessage(words, 5000);
  const next = playbook.waiting[at] ?? playbook.waiting.at(-1) ?? playbook.lesson(done.bulletId) ?? playbook.top;
  await playbook.show(next);
  return decided;
}

export const accept = (parts: PlaybookParts, node: PlaybookNode, content?: string): Changed => {
  const edited = content === undefined ? {} : { content };
  return decide(parts, node, (id) => ({ accept: [{ id, ...edited }] }), `$(check) ${t("Lesson accepted.")}`);
};

export const reject = (parts: PlaybookParts, node: PlaybookNode): Changed =>
  decide(parts, node, (id) => ({ reject: [id] }), `$(close) ${t("Lesson rejected.")}`);

/** The text in place: of a lesson, or of a proposal, which is accepted so. */
export async function edit(parts: PlaybookParts, node: PlaybookNode): Changed {
  if (node.kind === "change") {
    const { content, status } = node.shown;
    if (status !== "proposed" || !content) return [];
    const text = await ask(t("Edit and accept lesson"), content);
    return text ? accept(parts, node, text === content ? undefined : text) : [];
  }
  if (node.kind !== "lesson") return [];
  const { bullet } = node.lesson;
  const content = await ask(t("Edit lesson {0}", bullet.id), bullet.content);
  if (!content || content === bullet.content) return [];
  return update(parts, "daiku/playbook/update", { id: bullet.id, content });
}

/** Asks for a text, whose line ends are shown as signs. */
async function ask(title: string, text = ""): Promise<string | undefined> {
  const prompt = t("What to do or avoid, and when. Use {0} for a line break.", LINE_END.trim());
  const value = text.replaceAll("\n", LINE_END);
  const written = await vscode.window.showInputBox({ title, prompt, value, ignoreFocusOut: true });
  return written === value ? text : written?.replaceAll(/ ?⏎ ?/g, "\n").trim();
}

export async function switchTo(parts: PlaybookParts, node: PlaybookNode, active: boolean): Changed {
  if (node.kind !== "lesson") return [];
  const { id } = node.lesson.bullet;
  return update(parts, "daiku/playbook/update", { id, active });
}

export const removeLesson = async (parts: PlaybookParts, { bullet: { id, active } }: Lesson) =>
  active ? update(parts, "daiku/playbook/remove", { id }) : [];

async function update<M extends "daiku/playbook/update" | "daiku/playbook/remove">(
  { server, playbook }: PlaybookParts,
  method: M,
  wanted: Requests[M][0],
): Changed {
  const { deltas, redacted } = await request(await server.client(), method, wanted);
  if (redacted) sayRedacted();
  await playbook.refresh();
  return deltas;
}

/** A lesson in the person's own words: its text, where it belongs, whom it is for. */
export async function add(parts: PlaybookParts): Changed {
  const { server, playbook } = parts;
  const content = await ask(t("New lesson"));
  if (!content) return [];
  const client = await server.client();
  const { repository } = await request(client, "daiku/playbook/watch", { revision: "" });
  const scope = repository ? await chooseScope() : "user";
  if (!scope) return [];
  const { sections } = await request(client, "daiku/playbook/list", { scope });
  const section = await chooseSection(sections);
  if (!section) return [];
  const { deltas, bullet, redacted } = await request(client, "daiku/playbook/add", { content, section, scope });
  if (redacted) sayRedacted();
  await playbook.search("");
  await playbook.show(bullet && playbook.lesson(bullet.id));
  return deltas;
}

async function chooseScope(): Promise<Scope | undefined> {
  const entries: { label: string; scope: Scope }[] = [
    { label: `$(repo) ${t("For this repository")}`, scope: "repository" },
    { label: `$(account) ${t("For me, in all folders")}`, scope: "user" },
  ];
  return (await vscode.window.showQuickPick(entries, { title: t("Where does the lesson apply?") }))?.scope;
}

async function chooseSection(sections: readonly string[]): Promise<string | undefined> {
  const entries = sections.map((section) => ({ label: sectionWords(section), section }));
  const title = t("Lesson section");
  const other = { label: `$(add) ${t("New section…")}`, section: "" };
  const picked = await vscode.window.showQuickPick([...entries, other], { title });
  if (!picked) return undefined;
  return picked.section || (await vscode.window.showInputBox({ title, ignoreFocusOut: true }))?.trim();
}

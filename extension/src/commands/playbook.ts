// Commands for the playbook: look at lessons, decide on what waits, reword, switch off and on, add, take back.

import * as vscode from "vscode";
import type { PlaybookPlace, ShownDelta } from "../contract.gen";
import { t } from "../l10n";
import { placeOf } from "../pure/chat/conversation";
import { deltaOf } from "../review/lessonDiff";
import { isFromKey, isOnlySelecting, nodeIn, selectFocused } from "../trees/focus";
import type { PlaybookTree } from "../trees/playbook";
import { lessonText, type PlaybookNode } from "../trees/playbookRows";
import { changeWords } from "../trees/playbookWords";
import { accept, add, type Changed, edit, type PlaybookParts, reject, removeLesson, review, switchTo } from "./lessons";
import type { CommandTable } from "./table";

type Act = (parts: PlaybookParts, node: PlaybookNode) => Changed;

/** What changes lessons, by the last word of the command's id. */
const ACTS: Record<string, Act> = {
  edit,
  accept,
  reject,
  disable: (parts, node) => switchTo(parts, node, false),
  enable: (parts, node) => switchTo(parts, node, true),
  toggle: (parts, node) =>
    node.kind === "lesson" ? switchTo(parts, node, !node.lesson.bullet.active) : accept(parts, node),
  remove: (parts, node) => (node.kind === "lesson" ? removeLesson(parts, node.lesson) : reject(parts, node)),
};

/** The commands for the playbook, by their ids. */
export function playbookCommands(parts: PlaybookParts): CommandTable {
  const { playbook, server } = parts;
  /** What was changed in this window, for the key that takes the last of it back. */
  const changed: string[] = [];
  const remember = async (changing: Changed) => {
    for (const { id, status } of await changing) if (status === "applied") changed.push(id);
  };
  const acting = (act: Act) => async (argument?: unknown) => {
    const node = await nodeOf(playbook, argument);
    if (node) await remember(act(parts, node));
  };
  return {
    "daiku.playbook": () => look(parts),
    "daiku.playbook.show": (argument) => show(parts, argument),
    "daiku.playbook.search": () => search(parts),
    "daiku.playbook.clearSearch": () => playbook.search(""),
    "daiku.playbook.refresh": async () => {
      await server.client();
      await playbook.refresh();
    },
    "daiku.playbook.add": () => remember(add(parts)),
    "daiku.playbook.diff": async (argument) => {
      const node = isOnlySelecting() ? undefined : await nodeOf(playbook, argument);
      if (node?.kind === "change") await openDiff(parts, node.shown);
    },
    "daiku.playbook.open": async (argument) => {
      const node = isOnlySelecting() ? undefined : await nodeOf(playbook, argument);
      if (node?.kind === "lesson") await parts.lessonDiffs.read(node.lesson.bullet.id, lessonText(node.lesson));
    },
    "daiku.playbook.openPlace": async (argument) => {
      const place = isOnlySelecting() ? undefined : placeIn(argument);
      if (place) await openPlace(parts, place);
    },
    ...Object.fromEntries(Object.entries(ACTS).map(([name, act]) => [`daiku.playbook.${name}`, acting(act)])),
    "daiku.playbook.undo": async (argument) => takeBack(parts, changed, await nodeOf(playbook, argument)),
  };
}

/** The change that is pointed at, which waits again where it was rejected, else the last one that was made in this window. */
async function takeBack(parts: PlaybookParts, changed: string[], node: PlaybookNode | undefined): Promise<void> {
  const isDecided = node?.kind === "change" && ["applied", "rejected"].includes(node.shown.status);
  const own = isDecided ? node.shown.id : undefined;
  const id = own ?? changed.at(-1);
  if (!id) return void vscode.window.setStatusBarMessage(t("Nothing to undo."), 5000);
  const [done] = await review(parts, { undo: [id] });
  changed.splice(0, changed.length, ...changed.filter((one) => one !== id));
  const words = done?.status === "proposed" ? t("The lesson is pending review again.") : t("Undone.");
  if (done) vscode.window.setStatusBarMessage(`$(discard) ${words}`, 5000);
}

/** What a menu, a row or the title of a diff hands over, else what has the focus in the tree or is selected there. */
async function nodeOf(playbook: PlaybookTree, argument: unknown): Promise<PlaybookNode | undefined> {
  // The keys in a diff say nothing of where they were pressed.
  const uri = argument === undefined ? vscode.window.activeTextEditor?.document.uri : argument;
  const id = uri instanceof vscode.Uri ? deltaOf(uri) : undefined;
  if (id) {
    return playbook.waiting.find((node) => node.kind === "change" && node.shown.id === id);
  }
  const given = isFromKey(argument) ? await selectFocused(playbook.view) : playbook.view.selection[0];
  const node = nodeIn<PlaybookNode>(argument) ?? given;
  // What says more of a change stands for it.
  return node?.kind === "fact" || node?.kind === "place" ? node.parent : node;
}

/** The place of a row, or what its menu hands over. */
function placeIn(argument: unknown): PlaybookPlace | undefined {
  const node = nodeIn<PlaybookNode>(argument);
  if (node?.kind === "place") return node.place;
  if (node?.kind === "observation") return node.observation.place;
  return typeof argument === "object" && argument !== null && "sessionId" in argument
    ? (argument as PlaybookPlace)
    : undefined;
}

/** Opens the chat that something was learnt in, and shows what taught it. */
async function openPlace({ chat, panel }: PlaybookParts, { sessionId, seq }: PlaybookPlace): Promise<void> {
  await panel.reveal();
  if (chat.current !== sessionId) await chat.open(sessionId);
  panel.post({ type: "place", ...placeOf(chat.chunks, seq) });
}

async function look({ server }: PlaybookParts): Promise<void> {
  await vscode.commands.executeCommand("daiku.playbook.focus");
  await server.client();
}

/** Brings a lesson into sight, by its id; without one the playbook. */
async function show(parts: PlaybookParts, argument: unknown): Promise<void> {
  const { playbook } = parts;
  await look(parts);
  if (typeof argument !== "string" || !argument) return;
  await playbook.search("");
  const node = playbook.lesson(argument);
  if (node) await playbook.show(node, true);
  else void vscode.window.showInformationMessage(t("Lesson not found: {0}", argument));
}

async function search({ server, playbook }: PlaybookParts): Promise<void> {
  const prompt = t("Enter words in any language. Leave empty to show all lessons.");
  const query = await vscode.window.showInputBox({ title: t("Search lessons"), prompt });
  if (query === undefined) return;
  await server.client();
  await playbook.search(query);
  await playbook.show(playbook.top);
}

async function openDiff({ lessonDiffs }: PlaybookParts, shown: ShownDelta): Promise<void> {
  await lessonDiffs.open(shown, t("Lesson ({0})", changeWords(shown)));
}

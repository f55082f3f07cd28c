// Handles what the panel asks for, one entry a message.

import * as vscode from "vscode";
import { attachmentOf, currentEditor, findCandidates } from "../editor/context";
import { openFile, openLink } from "../editor/open";
import { t } from "../l10n";
import { diffsOf, startOf } from "../pure/chat/conversation";
import {
  type Approvals,
  type FromPanel,
  type Mode,
  PANEL_COMMANDS,
  type Situation,
  type ToPanel,
} from "../pure/chat/panel";
import { errorText, failureOf, request } from "../server/rpc";
import type { Server } from "../server/server";
import type { Chat } from "./chat";
import { askRestoreFiles, undo } from "./undo";

interface RequestParts {
  chat: Chat;
  server: Pick<Server, "client" | "running">;
  log: Pick<vscode.LogOutputChannel, "error">;
  post: (message: ToPanel) => void;
  situation: () => Situation;
  setMode: (mode: Mode) => void;
  setApprovals: (approvals: Approvals) => Promise<void>;
  /** Opens a file as it was before `diff`; `all` are the session's diffs in order, of which it is one. */
  openDiff: (name: string, diff: string, all: readonly string[]) => Promise<void>;
}

type Handlers = {
  [T in FromPanel["type"]]: (parts: RequestParts, message: Extract<FromPanel, { type: T }>) => unknown;
};

/** Handles the panel's messages; what fails is said in the panel. */
export function handleRequests(parts: RequestParts): (message: FromPanel) => void {
  return (message) => {
    handle(parts, message).catch((error: unknown) => {
      const failure = failureOf(error);
      if (!failure) return;
      parts.log.error(`${message.type}: ${errorText(error)}`);
      parts.post({ type: "failed", ...failure });
    });
  };
}

/** The panel is a web page: a message that no entry is for is left alone. */
async function handle(parts: RequestParts, message: FromPanel): Promise<void> {
  if (!Object.hasOwn(HANDLERS, message.type)) return;
  await (HANDLERS[message.type] as (parts: RequestParts, message: FromPanel) => unknown)(parts, message);
}

const HANDLERS: Handlers = {
  ready: async ({ chat, post, situation, server }) => {
    post({ type: "hello", situation: situation(), words: vscode.l10n.bundle, locale: vscode.env.language });
    post(chat.snapshot());
    if (vscode.workspace.isTrusted || server.running()) await server.client().catch(() => undefined);
  },
  send: ({ chat }, { text, context }) => chat.send(text, context),
  steer: ({ chat }, { text }) => chat.steer(text),
  earlier: ({ chat }) => chat.earlier(),
  stop: ({ chat }) => chat.stop(),
  approve: ({ chat }, { run: runId, approvalId, decision, feedback, hunks }) =>
    chat.approve({
      ...{ runId, approvalId, decision },
      ...(feedback ? { feedback } : {}),
      ...(hunks ? { hunks: [...hunks] } : {}),
    }),
  answer: ({ chat }, { run, inputId, text }) => chat.answer(run, inputId, text),
  resume: ({ chat }, { run }) => chat.resume(run),
  retry: async ({ chat }, { run }) => {
    const start = startOf(chat.chunks, run);
    if (start && !chat.working) await chat.send(start.data.prompt, start.data.context, { mode: start.data.mode });
  },
  rephrase: ({ chat, post }, { run }) => rephrase(chat, post, run),
  planStart: (_, { planId }) => vscode.commands.executeCommand("daiku.plan.start", { planId }),
  planUpdate: async ({ chat, server }, { planId, steps }) => {
    await request(await server.client(), "daiku/plan/update", { planId, steps: [...steps] });
    await chat.catchUp();
  },
  undo: ({ chat }, { checkpointId }) => undo(chat, checkpointId),
  openDiff: ({ chat, openDiff }, { path, diff }) => openDiff(path, diff, diffsOf(chat.chunks)),
  openFile: (_, { path, line }) => openFile(path, line),
  openLink: (_, { href }) => openLink(href),
  openLesson: (_, { id }) => vscode.commands.executeCommand("daiku.playbook.show", id),
  copy: (_, { text }) => vscode.env.clipboard.writeText(text),
  insert: (_, { text }) => insert(text),
  setMode: ({ setMode }, { mode }) => setMode(mode),
  setApprovals: ({ setApprovals }, { approvals }) => setApprovals(approvals),
  sessions: ({ chat, post }, { query }) => tellSessions(chat, post, query),
  openSession: ({ chat }, { session }) => chat.open(session),
  deleteSession: async ({ chat, post }, { session }) => {
    if (await deleteSession(chat, session)) await tellSessions(chat, post, "");
  },
  forkSession: ({ chat }, { session, atSeq }) => chat.fork(session, atSeq),
  candidates: async ({ post }, { query }) =>
    post({ type: "candidates", query, candidates: await findCandidates(query) }),
  command: async (_, { command }) => {
    if (PANEL_COMMANDS.includes(command)) await vscode.commands.executeCommand(command);
  },
};

async function insert(text: string): Promise<void> {
  const editor = currentEditor();
  await editor?.edit((edit) => {
    for (const selection of editor.selections) edit.replace(selection, text);
  });
}

async function tellSessions(chat: Chat, post: RequestParts["post"], query: string): Promise<void> {
  post({ type: "sessions", query, sessions: await chat.list(query), current: chat.current });
}

/** A new chat up to what was said, and the words in the composer; files as the person wants them. */
async function rephrase(chat: Chat, post: RequestParts["post"], run: string): Promise<void> {
  const start = startOf(chat.chunks, run);
  if (!start) return;
  const { prompt: text, context } = start.data;
  const atSeq = Math.max(0, start.seq - 1);
  const files = await askRestoreFiles(chat.chunks, atSeq);
  if (files === undefined) return;
  await chat.fork(start.session, atSeq, files);
  post({ type: "prefill", text, attachments: context.map(attachmentOf) });
}

/** Asks first; answers whether it is gone. */
export async function deleteSession(chat: Pick<Chat, "remove">, session: string): Promise<boolean> {
  const remove = t("Delete");
  const words = t("Delete this chat and its checkpoints?");
  if ((await vscode.window.showWarningMessage(words, { modal: true }, remove)) !== remove) return false;
  await chat.remove(session);
  return true;
}

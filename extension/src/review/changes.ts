// What Daiku changed in the folder and nobody has decided on: the server's list, as it was last told.

import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import type { ChangedFile, DecideParams } from "../contract.gen";
import { fileOf } from "../editor/paths";
import { countOpen } from "../pure/diff/hunks";
import { raw, request } from "../server/rpc";
import type { Server } from "../server/server";

export interface Changes extends vscode.Disposable {
  /** Whichever chat changed them: files are the folder's. One stands there once for each chat that changed it. */
  readonly files: readonly ChangedFile[];
  /** The list is the server's present one; otherwise it is the last that was heard of. */
  readonly known: boolean;
  readonly onChange: vscode.Event<void>;
  of(uri: vscode.Uri): readonly ChangedFile[];
  /** The text against which a file is shown; empty where there was none. */
  original(session: string, path: string): Promise<string>;
  /** Answers with the checkpoint that brings back what was rejected. Raises `stale` where a hunk is not what it was. */
  decide(decision: Decision, file: ChangedFile, hunkIds?: readonly string[]): Promise<string | undefined>;
  /** All of all chats; the checkpoints that bring back what was rejected, in the order of the decisions. */
  decideAll(decision: Decision): Promise<string[]>;
  refresh(): Promise<void>;
}

type Decision = DecideParams["decision"];

/** Typing moves hunks: so long after the last key the list is asked for again. */
const TYPING_MS = 300;

export function createChanges(chat: Chat, server: Server, log: vscode.LogOutputChannel): Changes {
  const changed = new vscode.EventEmitter<void>();
  let files: readonly ChangedFile[] = [];
  let known = false;
  let asked = 0;
  let timer: NodeJS.Timeout | undefined;

  const tell = () => {
    void vscode.commands.executeCommand("setContext", "daiku.changes", countOpen(files).changes);
    void vscode.commands.executeCommand("setContext", "daiku.changesKnown", known);
    changed.fire();
  };
  const refresh = async () => {
    clearTimeout(timer);
    const mine = ++asked;
    const client = server.running();
    if (!client) {
      // What was listed still waits, whether the server runs or not.
      known = false;
      return tell();
    }
    const list = await request(client, "daiku/changes/list", {});
    // An answer that was overtaken by a later question says nothing any more.
    if (mine !== asked) return;
    files = list.files;
    known = true;
    tell();
  };
  const soon = (ms: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      refresh().catch((error: unknown) => log.warn(`changes: ${raw(error)}`));
    }, ms);
  };
  const of = (uri: vscode.Uri) => {
    const wanted = uri.toString();
    return files.filter((file) => fileOf(file.path)?.toString() === wanted);
  };
  const decide = async (sessionId: string, decision: Decision, what: Partial<DecideParams> = {}) => {
    try {
      const answer = await request(await server.client(), "daiku/changes/decide", { sessionId, decision, ...what });
      if (sessionId === chat.current) await chat.catchUp();
      return answer.checkpointId ?? undefined;
    } finally {
      await refresh();
    }
  };
  const followed = [
    chat.onFiles(() => soon(30)),
    chat.onWorking((working) => {
      if (!working) soon(30);
    }),
    server.onState(() => soon(0)),
    vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (contentChanges.length > 0 && of(document.uri).length > 0) soon(TYPING_MS);
    }),
  ];
  return {
    get files() {
      return files;
    },
    get known() {
      return known;
    },
    onChange: changed.event,
    of,
    refresh,
    original: async (sessionId, path) => {
      const { text } = await request(await server.client(), "daiku/changes/original", { sessionId, path });
      return text ?? "";
    },
    decide: (decision, { sessionId, path }, hunkIds) =>
      decide(sessionId, decision, { path, ...(hunkIds ? { hunkIds: [...hunkIds] } : {}) }),
    decideAll: async (decision) => {
      const made: string[] = [];
      for (const sessionId of new Set(files.map((file) => file.sessionId))) {
        const checkpoint = await decide(sessionId, decision);
        if (checkpoint) made.push(checkpoint);
      }
      return made;
    },
    dispose: () => {
      clearTimeout(timer);
      vscode.Disposable.from(changed, ...followed).dispose();
    },
  };
}

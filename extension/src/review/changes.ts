// What the open chat changed and the person has not decided on: the server's list, as it was last told.

import * as vscode from "vscode";
import type { Chat } from "../chat";
import type { ChangedFile, DecideParams } from "../contract.gen";
import { countOpen } from "../pure/hunks";
import { failureOf, request } from "../rpc";
import type { Server } from "../server";
import { fileOf } from "../vscodeapi";

export interface Changes extends vscode.Disposable {
  readonly files: readonly ChangedFile[];
  readonly onChange: vscode.Event<void>;
  of(uri: vscode.Uri): ChangedFile | undefined;
  /** The text against which a file is shown; empty where there was none. */
  original(session: string, path: string): Promise<string>;
  /** Answers with the checkpoint that brings back what was rejected. Raises `stale` where a hunk is not what it was. */
  decide(decision: DecideParams["decision"], path?: string, hunkIds?: readonly string[]): Promise<string | undefined>;
  refresh(): Promise<void>;
}

/** Typing moves hunks: so long after the last key the list is asked for again. */
const TYPING_MS = 300;

export function createChanges(chat: Chat, server: Server, log: vscode.LogOutputChannel): Changes {
  const changed = new vscode.EventEmitter<void>();
  let files: readonly ChangedFile[] = [];
  let asked = 0;
  let timer: NodeJS.Timeout | undefined;

  const take = (fresh: readonly ChangedFile[]) => {
    files = fresh;
    const count = countOpen(files);
    void vscode.commands.executeCommand("setContext", "daiku.changes", count.changes);
    changed.fire();
  };
  const refresh = async () => {
    clearTimeout(timer);
    const mine = ++asked;
    const client = server.running();
    const sessionId = chat.current;
    if (!client || !sessionId) return take([]);
    const list = await request(client, "daiku/changes/list", { sessionId });
    // An answer that was overtaken by a later question says nothing any more.
    if (mine === asked) take(list.files);
  };
  const soon = (ms: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      refresh().catch((error: unknown) => log.warn(`changes: ${failureOf(error)?.message}`));
    }, ms);
  };
  const of = (uri: vscode.Uri) => {
    const wanted = uri.toString();
    return files.find((file) => fileOf(file.path)?.toString() === wanted);
  };
  const followed = [
    chat.onChunks((chunks) => {
      const all = chunks[0]?.seq === chat.chunks[0]?.seq;
      if (all || chunks.some(({ type }) => type === "edit" || type === "review" || type === "restored")) soon(30);
    }),
    chat.onWorking((working) => {
      if (!working) soon(30);
    }),
    vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (contentChanges.length > 0 && of(document.uri)) soon(TYPING_MS);
    }),
  ];
  return {
    get files() {
      return files;
    },
    onChange: changed.event,
    of,
    refresh,
    original: async (sessionId, path) => {
      const { text } = await request(await server.client(), "daiku/changes/original", { sessionId, path });
      return text ?? "";
    },
    decide: async (decision, path, hunkIds) => {
      const sessionId = chat.current;
      if (!sessionId) return undefined;
      const what = { ...(path ? { path } : {}), ...(hunkIds ? { hunkIds: [...hunkIds] } : {}) };
      try {
        const answer = await request(await server.client(), "daiku/changes/decide", { sessionId, decision, ...what });
        asked++;
        take(answer.files);
        await chat.catchUp();
        return answer.checkpointId ?? undefined;
      } catch (error) {
        await refresh();
        throw error;
      }
    },
    dispose: () => {
      clearTimeout(timer);
      vscode.Disposable.from(changed, ...followed).dispose();
    },
  };
}

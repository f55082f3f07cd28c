// The changes in the folder that wait for a decision: the server's list, as it last answered.

import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import type { ChangedFile, DecideParams } from "../contract.gen";
import { fileOf } from "../editor/paths";
import { t } from "../l10n";
import { countOpen } from "../pure/diff/hunks";
import { errorText, request } from "../server/rpc";
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
  /** Answers with the checkpoint that brings back what was rejected. Throws `stale` where a hunk is not what it was. */
  decide(decision: Decision, file: ChangedFile, hunkIds?: readonly string[]): Promise<string | undefined>;
  /** All of all chats; the checkpoints that bring back what was rejected, in the order of the decisions. */
  decideAll(decision: Decision): Promise<string[]>;
  refresh(): Promise<void>;
}

type Decision = DecideParams["decision"];
type Followed = Pick<Chat, "current" | "catchUp" | "onFiles" | "onWorking">;
type Served = Pick<Server, "client" | "running" | "onState">;
type Log = Pick<vscode.LogOutputChannel, "warn">;

/** After a decision or a run the list is asked for again, so soon. */
const SOON_MS = 30;
/** Typing moves hunks: so long after the last key the list is asked for again. */
const TYPING_MS = 300;

/** The list of changes, asked for again after runs, decisions, restarts and typing. */
export const createChanges = (chat: Followed, server: Served, log: Log): Changes =>
  new FolderChanges(chat, server, log);

class FolderChanges implements Changes {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #chat: Followed;
  readonly #server: Served;
  readonly #log: Log;
  readonly #subscriptions: vscode.Disposable[];
  #files: readonly ChangedFile[] = [];
  #known = false;
  #questions = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(chat: Followed, server: Served, log: Log) {
    this.#chat = chat;
    this.#server = server;
    this.#log = log;
    this.#subscriptions = [
      this.#changed,
      chat.onFiles(() => this.#refreshIn(SOON_MS)),
      chat.onWorking((working) => {
        if (!working) this.#refreshIn(SOON_MS);
      }),
      server.onState(() => this.#refreshIn(0)),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0 && this.of(document.uri).length > 0) this.#refreshIn(TYPING_MS);
      }),
    ];
  }

  get files() {
    return this.#files;
  }
  get known() {
    return this.#known;
  }
  get onChange() {
    return this.#changed.event;
  }

  of(uri: vscode.Uri) {
    const wanted = uri.toString();
    return this.#files.filter((file) => fileOf(file.path)?.toString() === wanted);
  }

  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    const mine = ++this.#questions;
    const client = this.#server.running();
    if (!client) {
      // What was listed still waits, whether the server runs or not.
      this.#known = false;
      return this.#tell();
    }
    const list = await request(client, "daiku/changes/list", {});
    // An answer that was overtaken by a later question says nothing any more.
    if (mine !== this.#questions) return;
    this.#files = list.files;
    this.#known = true;
    this.#tell();
  }

  async original(sessionId: string, path: string) {
    const { text } = await request(await this.#server.client(), "daiku/changes/original", { sessionId, path });
    return text ?? "";
  }

  decide(decision: Decision, { sessionId, path }: ChangedFile, hunkIds?: readonly string[]) {
    return this.#decide(sessionId, decision, { path, ...(hunkIds ? { hunkIds: [...hunkIds] } : {}) });
  }

  async decideAll(decision: Decision) {
    const made: string[] = [];
    for (const sessionId of new Set(this.#files.map((file) => file.sessionId))) {
      const checkpoint = await this.#decide(sessionId, decision);
      if (checkpoint) made.push(checkpoint);
    }
    return made;
  }

  dispose(): void {
    clearTimeout(this.#timer);
    vscode.Disposable.from(...this.#subscriptions).dispose();
  }

  async #decide(sessionId: string, decision: Decision, what: Partial<DecideParams> = {}) {
    try {
      const params = { sessionId, decision, ...what };
      const answer = await request(await this.#server.client(), "daiku/changes/decide", params);
      if (sessionId === this.#chat.current) await this.#chat.catchUp();
      return answer.checkpointId ?? undefined;
    } finally {
      await this.refresh();
    }
  }

  #refreshIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.refresh().catch((error: unknown) => this.#log.warn(`changes: ${errorText(error)}`));
    }, ms);
  }

  #tell(): void {
    void vscode.commands.executeCommand("setContext", "daiku.changes", countOpen(this.#files).changes);
    void vscode.commands.executeCommand("setContext", "daiku.changesKnown", this.#known);
    this.#changed.fire();
  }
}

/** "3 changes in 2 files" */
export function countWords({ changes, files }: { changes: number; files: number }): string {
  if (changes === 1) return t("1 change in 1 file");
  return files === 1 ? t("{0} changes in 1 file", changes) : t("{0} changes in {1} files", changes, files);
}

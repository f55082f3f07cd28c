// The server's life: found, started, restarted after a crash, stopped.

import { existsSync, mkdirSync } from "node:fs";
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import type { Command, Running } from "./client";
import { ensureEnvironment, SetupError } from "./environment";
import { t } from "./l10n";
import type { ServerState } from "./pure/panel";
import { initializationOptions } from "./settings";
import { ownSetting } from "./vscodeapi";

export interface Server {
  /** The running client; starts the server where it does not run. Rejects when it cannot be started. */
  client(): Promise<LanguageClient>;
  /** The client, if the server runs. */
  running(): LanguageClient | undefined;
  readonly pid: number | undefined;
  readonly state: ServerState;
  readonly onState: vscode.Event<ServerState>;
  /** Restarts; calls during a restart lead to one more, not to many. */
  restart(why: string): Promise<void>;
  stop(): Promise<void>;
}

/** Pauses before a crashed server is started again; after the last one a person has to ask for it. */
const PAUSES_MS = [0, 500, 2000, 5000, 10_000];
/** A server that lived so long starts the count of crashes anew. */
const HEALTHY_MS = 60_000;

export function createServer(context: vscode.ExtensionContext, log: vscode.LogOutputChannel): Server {
  const changed = new vscode.EventEmitter<ServerState>();
  let state: ServerState = { phase: "off" };
  let now: Running | undefined;
  let starting: Promise<LanguageClient> | undefined;
  let restarting: Promise<void> | undefined;
  let queued = false;
  let crashes = 0;
  let born = 0;
  let over = false;
  const abort = new AbortController();
  context.subscriptions.push(changed, { dispose: () => abort.abort() });

  const become = (next: ServerState) => {
    state = next;
    log.info(`server: ${next.phase}${next.message ? ` (${next.message})` : ""}`);
    changed.fire(next);
  };

  const crashed = () => {
    // One that ends before it was ready is told by `launch`; to start it again would change nothing.
    if (over || !now) return;
    now = undefined;
    if (Date.now() - born > HEALTHY_MS) crashes = 0;
    const pause = PAUSES_MS[crashes++];
    if (pause === undefined) {
      const message = t("The Daiku server has stopped again and again.");
      return become({ phase: "failed", message, hint: t("The log says why. Then try again.") });
    }
    log.warn(`server ended by itself; starting it again in ${pause} ms`);
    become({ phase: "starting", message: t("The server stopped; starting it again…") });
    setTimeout(() => {
      if (!over && !now) void start().catch(() => undefined);
    }, pause);
  };

  const launch = async (): Promise<LanguageClient> => {
    try {
      const command = await serverCommand(context, log, become, abort.signal);
      become({ phase: "starting" });
      // Not before: reading the client's library takes longer than everything else at the start.
      const { startClient } = await import("./client");
      const made = await startClient(command, await initializationOptions(context.secrets), log, crashed);
      now = made;
      born = Date.now();
      become({ phase: "ready" });
      return made.client;
    } catch (error) {
      become(failed(error));
      throw error;
    }
  };

  const start = (): Promise<LanguageClient> => {
    if (now?.client.isRunning()) return Promise.resolve(now.client);
    starting ??= launch().finally(() => {
      starting = undefined;
    });
    return starting;
  };

  const end = async () => {
    const former = now;
    now = undefined;
    await former?.stop();
  };

  const restart = (why: string): Promise<void> => {
    if (restarting) {
      queued = true;
      return restarting;
    }
    log.info(`restart: ${why}`);
    crashes = 0;
    restarting = (async () => {
      await starting?.catch(() => undefined);
      await end();
      await start();
    })().finally(() => {
      restarting = undefined;
      if (!queued) return;
      queued = false;
      void restart("asked for again meanwhile").catch(() => undefined);
    });
    return restarting;
  };

  return {
    client: async () => {
      await restarting?.catch(() => undefined);
      return start();
    },
    running: () => (now?.client.isRunning() ? now.client : undefined),
    get pid() {
      return now?.pid;
    },
    get state() {
      return state;
    },
    onState: changed.event,
    restart,
    stop: async () => {
      over = true;
      abort.abort();
      await end();
    },
  };
}

function failed(error: unknown): ServerState {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof SetupError ? error.hint : t("The log says more. Try again when it is mended.");
  return { phase: "failed", message: t("Daiku could not start: {0}", message), hint };
}

/**
 * How to start the server: the person's own command, a developer's, or the environment made from the package.
 * Nothing of it comes from a workspace, and the working folder is never one: its files could shadow modules.
 * The environment is left alone: the commands that the server runs for the person inherit it.
 */
async function serverCommand(
  context: vscode.ExtensionContext,
  log: vscode.LogOutputChannel,
  become: (state: ServerState) => void,
  signal: AbortSignal,
): Promise<Command> {
  const storage = context.globalStorageUri.fsPath;
  mkdirSync(storage, { recursive: true });
  const set = ownSetting<string[]>("server.command");
  const developers = process.env.DAIKU_DEV_SERVER;
  const own = set?.length ? set : developers ? [developers, "lsp"] : undefined;
  const [command, ...args] = own ?? [
    await packaged(context, storage, log, become, signal),
    "-I",
    "-X",
    "utf8",
    "-m",
    "daiku",
    "lsp",
  ];
  if (own && command?.includes("/") && !existsSync(command)) {
    throw new SetupError(t("There is no {0}.", command), t("Correct the setting daiku.server.command."));
  }
  log.info(`server command: ${[command, ...args].join(" ")}`);
  return { command: command ?? "", args, cwd: storage };
}

async function packaged(
  context: vscode.ExtensionContext,
  storage: string,
  log: vscode.LogOutputChannel,
  become: (state: ServerState) => void,
  signal: AbortSignal,
): Promise<string> {
  const bundle = vscode.Uri.joinPath(context.extensionUri, "server").fsPath;
  const workspace = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const options = { location: vscode.ProgressLocation.Notification, title: "Daiku" };
  let shown: ((message: string) => void) | undefined;
  const report = (message: string) => {
    become({ phase: "installing", message });
    shown?.(message);
    if (shown) return;
    void vscode.window.withProgress(options, (progress) => {
      shown = (text) => progress.report({ message: text });
      shown(message);
      return made.then(
        () => undefined,
        () => undefined,
      );
    });
  };
  const made = ensureEnvironment({ bundle, storage, workspace, report, log: (line) => log.info(line), signal });
  return made;
}

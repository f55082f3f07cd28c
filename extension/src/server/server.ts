// The server's life: found, started, restarted after a crash, stopped.

import { existsSync, mkdirSync } from "node:fs";
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { ownSetting } from "../editor/paths";
import { t } from "../l10n";
import type { ServerState } from "../pure/chat/panel";
import { createLife, type LifeEvent } from "../pure/server/life";
import type { Command, Running } from "./client";
import { ensureEnvironment, SetupError } from "./environment";
import { isTold, raw, Told } from "./rpc";
import { initializationOptions } from "./settings";

/** While something takes long, so often is said how long. */
const TICK_MS = 1000;

export interface Server {
  /** The running client; starts the server where it does not run, shares what comes of a restart under way. */
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

export function createServer(context: vscode.ExtensionContext, log: vscode.LogOutputChannel): Server {
  const changed = new vscode.EventEmitter<ServerState>();
  let state: ServerState = { phase: "off" };
  const abort = new AbortController();
  context.subscriptions.push(changed, { dispose: () => abort.abort() });

  const become = (next: ServerState) => {
    // The clock of a long installation is no news for the log.
    if (next.phase !== state.phase || next.phase !== "installing")
      log.info(`server: ${next.phase}${next.message ? ` (${next.message})` : ""}`);
    state = next;
    changed.fire(next);
  };
  const launch = async (crashed: () => void, signal: AbortSignal): Promise<Running> => {
    let program = "";
    try {
      const command = await serverCommand(context, log, become, abort.signal);
      program = command.command;
      become({ phase: "starting" });
      // Not before: reading the client's library takes longer than everything else at the start.
      const { startClient } = await import("./client");
      return await startClient(command, await initializationOptions(context.secrets), { log, crashed, signal });
    } catch (error) {
      log.error(`start: ${raw(error)}`);
      throw startProblem(error, program);
    }
  };
  const tell = (event: LifeEvent) => {
    if (event.kind === "restart") return log.info(`restart: ${event.why}`);
    if (event.kind === "ready") return become({ phase: "ready" });
    if (event.kind === "failed") return become(failed(event.error));
    if (event.kind === "given-up") {
      const message = t("The Daiku server has stopped again and again.");
      return become({ phase: "failed", message, hint: t("The log says why. Then try again.") });
    }
    log.warn(`server ended by itself; starting it again in ${event.pause} ms`);
    become({ phase: "starting", message: t("The server stopped; starting it again…") });
  };
  const life = createLife<LanguageClient, Running>({ launch, tell });

  return {
    client: life.client,
    running: () => life.alive?.client,
    get pid() {
      return life.alive?.pid;
    },
    get state() {
      return state;
    },
    onState: changed.event,
    restart: life.restart,
    stop: async () => {
      abort.abort();
      await life.stop();
    },
  };
}

function failed(error: unknown): ServerState {
  const told = isTold(error) ? error : notStarted();
  return { phase: "failed", message: told.message, hint: told.hint };
}

const notStarted = () =>
  new Told(t("Daiku's server could not start."), t("The log says more. Try again when it is mended."));

/** What it means for a person that the server did not start; the system's own words are in the log. */
function startProblem(error: unknown, command: string): Told {
  if (isTold(error)) return new Told(t("Daiku could not start: {0}", error.message), error.hint || notStarted().hint);
  if ((error as { code?: unknown } | undefined)?.code === "ENOENT")
    return new Told(t("There is no program {0}.", command), t("Correct the setting daiku.server.command."));
  return notStarted();
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
  const begun = Date.now();
  let [words, part] = ["", 0];
  let shown: vscode.Progress<{ message?: string; increment?: number }> | undefined;
  /** With the time that has gone by: so that a person sees that it goes on. */
  const tell = () => {
    const message = t("{0} {1} s (once; about a minute, more where the network is slow)", words, elapsed(begun));
    become({ phase: "installing", message });
    shown?.report({ message });
  };
  const report = (message: string, done: number) => {
    const increment = done - part;
    [words, part] = [message, done];
    if (!shown) {
      void vscode.window.withProgress(options, (progress) => {
        shown = progress;
        return made.then(
          () => undefined,
          () => undefined,
        );
      });
    }
    tell();
    shown?.report({ increment });
  };
  const clock = setInterval(() => words && tell(), TICK_MS);
  const made = ensureEnvironment({ bundle, storage, workspace, report, log: (line) => log.info(line), signal });
  return made.finally(() => clearInterval(clock));
}

const elapsed = (since: number): number => Math.round((Date.now() - since) / 1000);

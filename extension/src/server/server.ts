// The server of this window: started when it is asked for, restarted after a crash; its state for those who show it.

import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { t } from "../l10n";
import type { ServerState } from "../pure/chat/panel";
import { Lifecycle, type LifecycleEvent } from "../pure/server/lifecycle";
import type { Running } from "./client";
import { serverCommand } from "./command";
import { errorText, isUserFacing, UserFacingError } from "./rpc";
import { initializationOptions } from "./settings";

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

/** The server of this window, not started yet. */
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
  const life = new Lifecycle<LanguageClient, Running>({
    launch: (crashed, signal) => launch(context, log, { become, crashed, signal, stopped: abort.signal }),
    tell: (event) => (event.kind === "restart" ? log.info(`restart: ${event.why}`) : become(stateAfter(event, log))),
  });
  return {
    client: () => life.client(),
    running: () => life.alive?.client,
    get pid() {
      return life.alive?.pid;
    },
    get state() {
      return state;
    },
    onState: changed.event,
    restart: (why) => life.restart(why),
    stop: async () => {
      abort.abort();
      await life.stop();
    },
  };
}

interface Launch {
  become: (state: ServerState) => void;
  crashed: () => void;
  /** Ends this attempt. */
  signal: AbortSignal;
  /** Ends an installation, too: the window is closed. */
  stopped: AbortSignal;
}

async function launch(
  { extensionUri: extension, globalStorageUri, secrets }: vscode.ExtensionContext,
  log: vscode.LogOutputChannel,
  { become, crashed, signal, stopped }: Launch,
): Promise<Running> {
  let program = "";
  try {
    const storage = globalStorageUri.fsPath;
    const command = await serverCommand({ extension, storage, log, become, signal: stopped });
    program = command.command;
    become({ phase: "starting" });
    // Not before: reading the client's library takes longer than everything else at the start.
    const { startClient } = await import("./client");
    return await startClient(command, await initializationOptions(secrets), { log, crashed, signal });
  } catch (error) {
    log.error(`start: ${errorText(error)}`);
    throw startProblem(error, program);
  }
}

function stateAfter(event: Exclude<LifecycleEvent, { kind: "restart" }>, log: vscode.LogOutputChannel): ServerState {
  switch (event.kind) {
    case "ready":
      return { phase: "ready" };
    case "failed": {
      const { message, hint } = isUserFacing(event.error) ? event.error : notStarted();
      return { phase: "failed", message, hint };
    }
    case "given-up": {
      const message = t("The Daiku server keeps stopping.");
      return { phase: "failed", message, hint: t("See the log for the cause, and try again.") };
    }
    case "crashed":
      log.warn(`server ended by itself; starting it again in ${event.pause} ms`);
      return { phase: "starting", message: t("The server stopped. Restarting…") };
  }
}

const notStarted = () =>
  new UserFacingError(
    t("Could not start the Daiku server."),
    t("See the log for details, fix the problem, and try again."),
  );

/** What it means for a person that the server did not start; the system's own words are in the log. */
function startProblem(error: unknown, command: string): UserFacingError {
  if (isUserFacing(error))
    return new UserFacingError(t("Could not start Daiku: {0}", error.message), error.hint || notStarted().hint);
  if ((error as { code?: unknown } | undefined)?.code === "ENOENT")
    return new UserFacingError(t("Program not found: {0}", command), t("Check the daiku.server.command setting."));
  return notStarted();
}

// The language client itself: loaded only when the server is started, for its library is large.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type * as vscode from "vscode";
import { CloseAction, ErrorAction, LanguageClient, type LanguageClientOptions } from "vscode-languageclient/node";
import { answerQueries } from "./editorQueries";
import { lendModels } from "./languageModel";
import { serverSettings } from "./settings";

export interface Command {
  command: string;
  args: string[];
  cwd: string;
}

/** A server that runs. */
export interface Running {
  client: LanguageClient;
  pid: number | undefined;
  /** Asks it to end; one that does not is killed. */
  stop(): Promise<void>;
}

const STOP_MS = 5000;
/** Of what a server writes to stderr, so much is kept to say why it ended. */
const MOST_SAID = 4000;

/** Starts the server and answers with its client once it is initialized. `crashed`: it has ended by itself. */
export async function startClient(
  command: Command,
  initialization: object,
  log: vscode.LogOutputChannel,
  crashed: () => void,
): Promise<Running> {
  let said = "";
  let child: ChildProcess | undefined;
  const launch = async () => {
    const born = spawn(command.command, command.args, { cwd: command.cwd, windowsHide: true });
    child = born;
    born.stderr.on("data", (data) => {
      said = (said + String(data)).slice(-MOST_SAID);
      log.info(`server says: ${String(data).trimEnd()}`);
    });
    await once(born, "spawn");
    return born;
  };
  const client = new LanguageClient("daiku", "Daiku", launch, clientOptions(log, initialization, crashed));
  lendModels(client);
  answerQueries(client);
  try {
    await client.start();
  } catch (error) {
    child?.kill("SIGKILL");
    await client.dispose().catch(() => undefined);
    throw said.trim() ? new Error(said.trim().split("\n").at(-1)) : error;
  }
  const stop = async () => {
    if (client.needsStop()) await client.stop(STOP_MS).catch((error: unknown) => log.warn(`stopping: ${error}`));
    await client.dispose().catch(() => undefined);
    if (child && child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  };
  return { client, pid: child?.pid, stop };
}

function clientOptions(
  log: vscode.LogOutputChannel,
  initialization: object,
  crashed: () => void,
): LanguageClientOptions {
  return {
    documentSelector: [{ scheme: "file" }, { scheme: "untitled" }],
    initializationOptions: initialization,
    outputChannel: log,
    initializationFailedHandler: (error) => {
      log.error(`initialize: ${error instanceof Error ? error.message : String(error)}`);
      return false;
    },
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        crashed();
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    },
    middleware: {
      workspace: {
        configuration: (params, token, next) =>
          params.items.every((item) => item.section === "daiku")
            ? params.items.map(serverSettings)
            : next(params, token),
      },
    },
  };
}

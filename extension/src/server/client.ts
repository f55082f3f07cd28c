// Starts the server's process and the language client: a bundle of its own, loaded with the first start.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type * as vscode from "vscode";
import { CloseAction, ErrorAction, LanguageClient, type LanguageClientOptions } from "vscode-languageclient/node";
import type { RunningServer } from "../pure/server/lifecycle";
import type { Command } from "./command";
import { answerQueries } from "./editorQueries";
import { lendModels } from "./languageModel";
import { UserFacingError } from "./rpc";
import { serverSettings } from "./settings";

/** A server that runs. Asked to end and not doing so, it is killed. */
export interface Running extends RunningServer<LanguageClient> {
  pid: number | undefined;
}

interface StartOptions {
  log: vscode.LogOutputChannel;
  /** It has ended by itself. */
  crashed: () => void;
  /** Ends a start that takes too long for those who wait. */
  signal: AbortSignal;
}

const STOP_MS = 5000;
/** Of what a server writes to stderr, so much is kept to say why it ended. */
const MOST_OUTPUT = 4000;

/** Starts the server and answers with its client once it is initialized. */
export async function startClient(
  command: Command,
  initialization: object,
  { log, crashed, signal }: StartOptions,
): Promise<Running> {
  let output = "";
  let child: ChildProcess | undefined;
  const launch = async () => {
    const started = spawn(command.command, command.args, { cwd: command.cwd, windowsHide: true });
    child = started;
    started.stderr.on("data", (data) => {
      output = (output + String(data)).slice(-MOST_OUTPUT);
      log.info(`server says: ${String(data).trimEnd()}`);
    });
    await once(started, "spawn");
    return started;
  };
  const client = new LanguageClient("daiku", "Daiku", launch, clientOptions(log, initialization, crashed));
  lendModels(client);
  answerQueries(client);
  const giveUp = () => child?.kill("SIGKILL");
  try {
    signal.throwIfAborted();
    signal.addEventListener("abort", giveUp);
    await client.start();
  } catch (error) {
    child?.kill("SIGKILL");
    await client.dispose().catch(() => undefined);
    // What our own program says at its end is meant for the person.
    throw output.trim() ? new UserFacingError(output.trim().split("\n").at(-1) ?? "") : error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
  const stop = async () => {
    if (client.needsStop()) await client.stop(STOP_MS).catch((error: unknown) => log.warn(`stopping: ${error}`));
    await client.dispose().catch(() => undefined);
    if (child && child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  };
  return { client, pid: child?.pid, running: () => client.isRunning(), stop };
}

function clientOptions(
  log: vscode.LogOutputChannel,
  initialization: object,
  crashed: () => void,
): LanguageClientOptions {
  return {
    documentSelector: [{ scheme: "file" }, { scheme: "untitled" }, { scheme: "vscode-notebook-cell" }],
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

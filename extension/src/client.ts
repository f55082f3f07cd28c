// The language client itself: loaded only when the server is started, for its library is large.

import type * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  type Executable,
  LanguageClient,
  type LanguageClientOptions,
  TransportKind,
} from "vscode-languageclient/node";
import { answerQueries } from "./editorQueries";
import { lendModels } from "./languageModel";
import { serverSettings } from "./settings";

/** Starts the server and answers with its client once it is initialized. `crashed`: it has ended by itself. */
export async function startClient(
  command: Executable,
  initialization: object,
  log: vscode.LogOutputChannel,
  crashed: () => void,
): Promise<LanguageClient> {
  const executable = { ...command, transport: TransportKind.stdio };
  const client = new LanguageClient("daiku", "Daiku", executable, clientOptions(log, initialization, crashed));
  lendModels(client);
  answerQueries(client);
  await client.start();
  return client;
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

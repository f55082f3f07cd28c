// Typed calls of the contract, and what its errors mean to a person.

import type * as vscode from "vscode";
import type { Disposable, LanguageClient, ProgressType, ResponseError } from "vscode-languageclient/node";
import type { Chunk, ClientRequests, Failure, Requests } from "./contract.gen";
import { t } from "./l10n";

/** Only a type: the library looks at nothing of it, and is not to be loaded for it. */
const CHUNK = {} as ProgressType<Chunk>;

const CANCELLED = new Set([-32800, -32802]);
const INTERNAL = -32603;

export function request<M extends keyof Requests>(
  client: LanguageClient,
  method: M,
  params: Requests[M][0],
  token?: vscode.CancellationToken,
): Promise<Requests[M][1]> {
  // Two calls: an absent token would be taken for a second parameter.
  return token ? client.sendRequest(method, params, token) : client.sendRequest(method, params);
}

/** Has the server carry out a command; `chunks`: the token on which its run streams. */
export function execute<R>(
  client: LanguageClient,
  command: string,
  args: object,
  options: { chunks?: string; cancel: vscode.CancellationToken },
): Promise<R> {
  const params = { command, arguments: [args], ...(options.chunks ? { partialResultToken: options.chunks } : {}) };
  return client.sendRequest("workspace/executeCommand", params, options.cancel);
}

export function answer<M extends keyof ClientRequests>(
  client: LanguageClient,
  method: M,
  handler: (params: ClientRequests[M][0], token: vscode.CancellationToken) => Promise<ClientRequests[M][1]>,
): Disposable {
  return client.onRequest(method, handler as (params: unknown, token: vscode.CancellationToken) => Promise<unknown>);
}

/** Hears the chunks of a request that was sent with `token`. */
export function onChunks(client: LanguageClient, token: string, listen: (chunk: Chunk) => void): Disposable {
  return client.onProgress(CHUNK, token, listen);
}

/** What a person is told of a failure. */
export type Said = Pick<Failure, "message" | "hint"> & { kind: string };

/** What a rejected request says; `undefined`: it was cancelled, which is no failure. */
export function failureOf(error: unknown): Said | undefined {
  if (isResponseError(error)) {
    if (CANCELLED.has(error.code)) return undefined;
    const data: unknown = error.data;
    if (error.code === INTERNAL)
      return {
        kind: "internal",
        message: t("Something unexpected went wrong in the server ({0}).", error.message),
        hint: t("The log says more. Try again; if it stays, please report it."),
      };
    if (isFailure(data)) return { kind: data.kind ?? "", message: data.message, hint: data.hint ?? "" };
    if (Array.isArray(data)) return { kind: "usage", message: data.map(String).join("; "), hint: "" };
    return { kind: "", message: error.message, hint: "" };
  }
  return { kind: "", message: error instanceof Error ? error.message : String(error), hint: "" };
}

function isResponseError(error: unknown): error is ResponseError<unknown> {
  return error instanceof Error && typeof (error as { code?: unknown }).code === "number";
}

function isFailure(data: unknown): data is { message: string; hint?: string; kind?: string } {
  return typeof data === "object" && data !== null && typeof (data as { message?: unknown }).message === "string";
}

// Typed requests of the contract, and what their errors mean to a person.

import type * as vscode from "vscode";
import type { Disposable, LanguageClient, ProgressType, ResponseError } from "vscode-languageclient/node";
import type { Chunk, ClientRequests, Failure, Requests } from "../contract.gen";
import { t } from "../l10n";

/** Only a type: the library looks at nothing of it, and is not to be loaded for it. */
const CHUNK = {} as ProgressType<Chunk>;

const CANCELLED = new Set([-32800, -32802]);
const INTERNAL = -32603;
/** The pipe to the server is gone: what the protocol's library calls by these codes. */
const SEVERED = new Set([-32099, -32098, -32097, -32096, 1, 2]);

/** What goes wrong, in our words for a person; the words of other errors are only for the log. */
export class UserFacingError extends Error {
  /** Known by this, not by its class: the language client is a bundle of its own, with a class of its own. */
  readonly userFacing = true;
  readonly hint: string;
  constructor(message: string, hint = "") {
    super(message);
    this.hint = hint;
  }
}

/** Sends a request of the contract; rejects with the server's error. */
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

/** Registers the handler of a request that the server makes. */
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
type FailureWords = Pick<Failure, "message" | "hint"> & { kind: string };

/** What a rejected request says; `undefined`: it was cancelled, which is no failure. */
export function failureOf(error: unknown): FailureWords | undefined {
  if (isUserFacing(error)) return { kind: "", message: error.message, hint: error.hint };
  if (isSevered(error))
    return {
      kind: "server_gone",
      message: t("The server stopped before it responded."),
      hint: t("The server restarts automatically. Try again when it is ready."),
    };
  if (!isResponseError(error)) return unexpected();
  if (CANCELLED.has(error.code)) return undefined;
  const data: unknown = error.data;
  if (error.code === INTERNAL) return unexpected();
  if (isFailure(data)) return { kind: data.kind ?? "", message: data.message, hint: data.hint ?? "" };
  if (Array.isArray(data)) return { kind: "usage", message: data.map(String).join("; "), hint: "" };
  return { kind: "", message: error.message, hint: "" };
}

/** What went wrong and what to do, on one line. */
export const failureWords = ({ message, hint }: Pick<FailureWords, "message" | "hint">): string =>
  [message, hint].filter(Boolean).join(" ");

/** Whether an error's message is meant for the person. */
export const isUserFacing = (error: unknown): error is UserFacingError =>
  error instanceof Error && (error as Partial<UserFacingError>).userFacing === true;

const unexpected = (): FailureWords => ({
  kind: "internal",
  message: t("An unexpected error occurred."),
  hint: t("See the log for details and try again. If the problem persists, report it."),
});

/** The library's own words of an error, for the log. */
export const errorText = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

/** Also what the client says by itself where it is asked while the server is down: it has no code for that. */
const isSevered = (error: unknown): boolean =>
  (isResponseError(error) && SEVERED.has(error.code)) ||
  (error instanceof Error && /^Client is not running|connection (got|is) (disposed|closed)/i.test(error.message));

function isResponseError(error: unknown): error is ResponseError<unknown> {
  return error instanceof Error && typeof (error as { code?: unknown }).code === "number";
}

function isFailure(data: unknown): data is { message: string; hint?: string; kind?: string } {
  return typeof data === "object" && data !== null && typeof (data as { message?: unknown }).message === "string";
}

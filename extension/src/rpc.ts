// Typed calls of the contract, and what its errors mean to a person.

import type * as vscode from "vscode";
import { type Disposable, type LanguageClient, ProgressType, ResponseError } from "vscode-languageclient/node";
import type { Chunk, ClientRequests, Failure, Requests } from "./contract.gen";

export const CHUNK = new ProgressType<Chunk>();

const CANCELLED = new Set([-32800, -32802]);

export function request<M extends keyof Requests>(
  client: LanguageClient,
  method: M,
  params: Requests[M][0],
  token?: vscode.CancellationToken,
): Promise<Requests[M][1]> {
  // Two calls: an absent token would be taken for a second parameter.
  return token ? client.sendRequest(method, params, token) : client.sendRequest(method, params);
}

export function answer<M extends keyof ClientRequests>(
  client: LanguageClient,
  method: M,
  handler: (params: ClientRequests[M][0], token: vscode.CancellationToken) => Promise<ClientRequests[M][1]>,
): Disposable {
  return client.onRequest(method, handler as (params: unknown, token: vscode.CancellationToken) => Promise<unknown>);
}

/** What a person is told of a failure. */
export type Said = Pick<Failure, "message" | "hint"> & { kind: string };

/** What a rejected request says; `undefined`: it was cancelled, which is no failure. */
export function failureOf(error: unknown): Said | undefined {
  if (error instanceof ResponseError) {
    if (CANCELLED.has(error.code)) return undefined;
    const data: unknown = error.data;
    if (isFailure(data)) return { kind: data.kind ?? "", message: data.message, hint: data.hint ?? "" };
    if (Array.isArray(data)) return { kind: "usage", message: data.map(String).join("; "), hint: "" };
    return { kind: "", message: error.message, hint: "" };
  }
  return { kind: "", message: error instanceof Error ? error.message : String(error), hint: "" };
}

function isFailure(data: unknown): data is { message: string; hint?: string; kind?: string } {
  return typeof data === "object" && data !== null && typeof (data as { message?: unknown }).message === "string";
}

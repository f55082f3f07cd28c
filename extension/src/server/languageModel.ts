// The editor's own models (vscode.lm), lent to the server.

import * as vscode from "vscode";
import { type LanguageClient, ProgressType, ResponseError } from "vscode-languageclient/node";
import type {
  EditorModelsResult,
  LanguageModelMessage,
  LanguageModelParams,
  LanguageModelResult,
} from "../contract.gen";
import { t } from "../l10n";
import { answer } from "./rpc";

type Part = LanguageModelResult["parts"][number];
const PART = new ProgressType<Part>();
const EXPECTED = -32803;

/** Registers the handlers with which the server lists and asks the editor's models. */
export function lendModels(client: LanguageClient): vscode.Disposable[] {
  return [
    answer(client, "daiku/languageModel/list", listModels),
    answer(client, "daiku/languageModel", (params, token) => ask(client, params, token)),
  ];
}

async function listModels(): Promise<EditorModelsResult> {
  const models = await vscode.lm.selectChatModels();
  return {
    models: models.map((model) => ({
      ...{ id: `${model.vendor}/${model.id}`, name: model.name, vendor: model.vendor, family: model.family },
      ...{ context: model.maxInputTokens, tools: true, images: false },
    })),
  };
}

async function ask(
  client: LanguageClient,
  params: LanguageModelParams,
  token: vscode.CancellationToken,
): Promise<LanguageModelResult> {
  const model = await find(params.model);
  const messages = params.messages.map(toMessage);
  const tools = params.tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  const stream = params.partialResultToken;
  const parts: Part[] = [];
  try {
    const justification = t("Daiku uses a model from your editor because you selected it.");
    const response = await model.sendRequest(messages, { tools, justification }, token);
    for await (const piece of response.stream) {
      const part = fromPiece(piece);
      if (!part) continue;
      parts.push(part);
      if (stream !== undefined) await client.sendProgress(PART, stream, part);
    }
  } catch (error) {
    throw toResponseError(error, model.name);
  }
  return { parts: joinTexts(parts), ...(await count(model, messages, parts, token)) };
}

async function find(id: string): Promise<vscode.LanguageModelChat> {
  const models = await vscode.lm.selectChatModels();
  const model =
    models.find((m) => id === `${m.vendor}/${m.id}` || id === m.id || id === m.family) ?? (id ? undefined : models[0]);
  if (model) return model;
  const hint = models.length
    ? t("Available models: {0}", models.map((m) => `${m.vendor}/${m.id}`).join(", "))
    : t("Sign in to a model provider in the editor, or select another provider.");
  const message = id
    ? t("The model {0} is not available in the editor.", id)
    : t("No models are available in the editor.");
  throw new ResponseError(EXPECTED, message, { kind: "not_found", message, hint });
}

function toMessage({ role, parts }: LanguageModelMessage): vscode.LanguageModelChatMessage {
  const pieces: (
    | vscode.LanguageModelTextPart
    | vscode.LanguageModelToolCallPart
    | vscode.LanguageModelToolResultPart
  )[] = [];
  for (const part of parts) {
    if (part.type === "text") pieces.push(new vscode.LanguageModelTextPart(part.text));
    else if (part.type === "call")
      pieces.push(new vscode.LanguageModelToolCallPart(part.callId, part.name, part.input));
    else if (part.type === "result")
      pieces.push(new vscode.LanguageModelToolResultPart(part.callId, [new vscode.LanguageModelTextPart(part.text)]));
  }
  if (role === "assistant")
    return vscode.LanguageModelChatMessage.Assistant(
      pieces.filter((p) => !(p instanceof vscode.LanguageModelToolResultPart)) as (
        | vscode.LanguageModelTextPart
        | vscode.LanguageModelToolCallPart
      )[],
    );
  return vscode.LanguageModelChatMessage.User(
    pieces.filter((p) => !(p instanceof vscode.LanguageModelToolCallPart)) as (
      | vscode.LanguageModelTextPart
      | vscode.LanguageModelToolResultPart
    )[],
  );
}

function fromPiece(piece: unknown): Part | undefined {
  if (piece instanceof vscode.LanguageModelTextPart) return { type: "text", text: piece.value };
  if (piece instanceof vscode.LanguageModelToolCallPart)
    return { type: "call", callId: piece.callId, name: piece.name, input: piece.input as Record<string, unknown> };
  return undefined;
}

/** Adjacent texts as one. */
function joinTexts(parts: readonly Part[]): Part[] {
  const whole: Part[] = [];
  for (const part of parts) {
    const last = whole.at(-1);
    if (part.type === "text" && last?.type === "text")
      whole[whole.length - 1] = { type: "text", text: last.text + part.text };
    else whole.push(part);
  }
  return whole;
}

async function count(
  model: vscode.LanguageModelChat,
  messages: vscode.LanguageModelChatMessage[],
  parts: readonly Part[],
  token: vscode.CancellationToken,
): Promise<{ promptTokens: number; completionTokens: number }> {
  const said = parts.map((part) => (part.type === "text" ? part.text : JSON.stringify(part))).join("");
  try {
    const counts = await Promise.all(messages.map((message) => model.countTokens(message, token)));
    return {
      promptTokens: counts.reduce((sum, n) => sum + n, 0),
      completionTokens: await model.countTokens(said, token),
    };
  } catch {
    return { promptTokens: 0, completionTokens: 0 };
  }
}

function toResponseError(error: unknown, name: string): unknown {
  if (!(error instanceof vscode.LanguageModelError)) return error;
  const known: Record<string, [kind: string, hint: string]> = {
    [vscode.LanguageModelError.NoPermissions.name]: [
      "auth",
      t("Send the request again and allow Daiku to use the editor's language models."),
    ],
    [vscode.LanguageModelError.Blocked.name]: [
      "content_filter",
      t("The provider declined the request. Rephrase it, or wait for your quota to reset."),
    ],
    [vscode.LanguageModelError.NotFound.name]: ["not_found", t("Select another model.")],
  };
  const [kind, hint] = known[error.code] ?? ["bad_request", ""];
  const message = t("{0} did not respond: {1}", name, error.message || error.code);
  return new ResponseError(EXPECTED, message, { kind, message, hint });
}

// The message of a failed test from the Testing view's menus, as a context item for a run.

import * as vscode from "vscode";
import type { ContextItem } from "../contract.gen";
import { wireUriOf } from "./notebooks";
import { toWireRange } from "./ranges";

const MOST = 20_000;

/** `undefined` for what is no `{test, message}`: an item alone does not tell why it failed. */
export function testFailureIn(argument: unknown): ContextItem | undefined {
  const { test, message } = (argument ?? {}) as { test?: vscode.TestItem; message?: vscode.TestMessage };
  if (!message) return undefined;
  const place = message.location ?? (test?.uri && test.range ? new vscode.Location(test.uri, test.range) : undefined);
  const uri = place?.uri ?? test?.uri;
  return {
    kind: "diagnostics",
    text: failureText(test, message).slice(0, MOST),
    ...(uri ? { uri: wireUriOf(uri) } : {}),
    ...(place ? { range: toWireRange(place.range) } : {}),
  };
}

function failureText(test: vscode.TestItem | undefined, message: vscode.TestMessage): string {
  const words = typeof message.message === "string" ? message.message : message.message.value;
  const compared = message.expectedOutput !== undefined || message.actualOutput !== undefined;
  const frames = message.stackTrace ?? [];
  return [
    test ? `Failed test: ${nameOf(test)}` : "Failed test",
    words,
    ...(compared ? [`Expected:\n${message.expectedOutput ?? ""}`, `Actual:\n${message.actualOutput ?? ""}`] : []),
    ...(frames.length > 0 ? [`Stack:\n${frames.map(frameText).join("\n")}`] : []),
  ].join("\n");
}

function nameOf(test: vscode.TestItem): string {
  const names: string[] = [];
  for (let at: vscode.TestItem | undefined = test; at; at = at.parent) names.unshift(at.label);
  return names.join(" › ");
}

function frameText({ label, uri, position }: vscode.TestMessageStackFrame): string {
  const place = uri ? ` (${vscode.workspace.asRelativePath(uri)}${position ? `:${position.line + 1}` : ""})` : "";
  return `  ${label}${place}`;
}

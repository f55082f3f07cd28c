// The last failed terminal command, as reported by the editor's shell integration.

import * as vscode from "vscode";
import type { ContextItem } from "../contract.gen";
import { plainText } from "../pure/text/ansi";

export interface Terminals {
  /** The command, its exit code and the end of what it said. */
  lastFailure(): ContextItem | undefined;
}

/** Of what a command says, so much of the end is kept. */
const MOST_SAID = 20_000;
/** What a shell says of a command that the person stopped. */
const INTERRUPTED = 130;

/** Remembers the last command that failed in a terminal. */
export function watchTerminals(context: vscode.ExtensionContext): Terminals {
  const said = new WeakMap<vscode.TerminalShellExecution, { text: string; read: Promise<void> }>();
  let failure: string | undefined;
  context.subscriptions.push(
    vscode.window.onDidStartTerminalShellExecution(({ execution }) => {
      const output = { text: "", read: Promise.resolve() };
      output.read = (async () => {
        for await (const data of execution.read()) output.text = (output.text + data).slice(-MOST_SAID);
      })().catch(() => undefined);
      said.set(execution, output);
    }),
    vscode.window.onDidEndTerminalShellExecution(async ({ execution, exitCode }) => {
      if (!exitCode || exitCode === INTERRUPTED) return;
      const output = said.get(execution);
      await output?.read;
      const folder = execution.cwd ? `${execution.cwd.fsPath} ` : "";
      // Of a command that ends at once the editor may hand over nothing; the agent can run it again.
      const words = plainText(output?.text ?? "").trim() || "[the editor did not hand over its output]";
      failure = `${folder}$ ${execution.commandLine.value}\n${words}\n[exit code ${exitCode}]`;
    }),
  );
  return { lastFailure: () => (failure === undefined ? undefined : { kind: "terminal", text: failure }) };
}

// Commands about code, carried out by the server as a run of the open chat.

import * as vscode from "vscode";
import type { Chat, CommandArgs } from "../chat/chat";
import type { Panel } from "../chat/panel";
import { currentEditor } from "../editor/context";
import { toWireRange } from "../editor/ranges";
import type { Terminals } from "../editor/terminals";
import { testFailureIn } from "../editor/testFailure";
import { t } from "../l10n";
import type { Models } from "../server/models";
import { execute, UserFacingError } from "../server/rpc";
import type { Server } from "../server/server";
import type { CommandTable } from "./table";

export interface CodeParts {
  chat: Pick<Chat, "working" | "newChat" | "command">;
  panel: Pick<Panel, "reveal">;
  server: Pick<Server, "client">;
  models: Pick<Models, "chosen">;
  terminals: Terminals;
}

/** The commands about code, by their ids. */
export function codeCommands(parts: CodeParts): CommandTable {
  const table: CommandTable = {
    "daiku.commitMessage": (argument) => commitMessage(parts, argument),
    "daiku.fixTerminal": () => {
      const failure = parts.terminals.lastFailure();
      if (failure) return carryOut(parts, "daiku.fix", { context: [failure] });
      return void vscode.window.showInformationMessage(
        t("No terminal command has failed since Daiku started, or shell integration is not available."),
      );
    },
  };
  table["daiku.fixTest"] = (argument) => {
    const failed = testFailureIn(argument);
    if (failed) return carryOut(parts, "daiku.fix", { context: [failed] });
    return void vscode.window.showInformationMessage(t("Select the message of a failed test in the Testing view."));
  };
  for (const name of ["daiku.explain", "daiku.fix", "daiku.writeTests", "daiku.review"])
    table[name] = (argument) => carryOut(parts, name, argsIn(argument) ?? selectionOrFile());
  table["daiku.document"] = async (argument) => {
    const args = argsIn(argument) ?? selectionOrFile();
    if (!args.uri || !holdsProse(args.uri)) return carryOut(parts, "daiku.document", args);
    const { ask, text, ...rest } = args;
    const told = text ?? args.instruction ?? "";
    const options = { title: t("Revise document"), prompt: t("What should be changed?"), ignoreFocusOut: true };
    const said = told && !ask ? told : await vscode.window.showInputBox({ ...options, value: told });
    if (said?.trim()) await carryOut(parts, "daiku.document", { ...rest, instruction: said.trim() });
  };
  const written: Record<string, [title: () => string, prompt: () => string]> = {
    "daiku.plan": [() => t("Plan"), () => t("What should the plan accomplish?")],
    "daiku.research": [() => t("Research"), () => t("What should Daiku research?")],
    "daiku.generateCode": [() => t("Generate Code"), () => t("What should Daiku write?")],
    "daiku.runCommands": [() => t("Run Commands"), () => t("What should Daiku run?")],
  };
  for (const [name, [title, prompt]] of Object.entries(written)) {
    table[name] = async (argument) => {
      const args = argsIn(argument) ?? selection();
      const text = args.text ?? args.instruction;
      const options = { title: title(), prompt: prompt(), ignoreFocusOut: true, value: text ?? "" };
      const said = text && !args.ask ? text : await vscode.window.showInputBox(options);
      const { ask: _, text: __, ...rest } = args;
      if (said?.trim()) await carryOut(parts, name, { ...rest, instruction: said.trim() });
    };
  }
  return table;
}

/** Whether a file holds prose by its name, as the server sees it. */
const holdsProse = (uri: string): boolean =>
  /\.(?:md|mdx|markdown|mkd|qmd|rmd|rst|rest|adoc|asciidoc|asc|html?|xhtml|tex|latex|txt|text)$/i.test(
    vscode.Uri.parse(uri).path,
  );

/** In the open chat, so that the person sees the run; where one is under way there, in a new one. */
async function carryOut({ chat, panel }: CodeParts, command: string, args: CommandArgs): Promise<void> {
  await panel.reveal();
  if (chat.working) chat.newChat();
  await chat.command(command, args);
}

/** What a code action, a lens or another extension hands over; menus hand over a URI, which is none of it. */
function argsIn(argument: unknown): CommandArgs | undefined {
  if (typeof argument === "string") return { text: argument };
  if (typeof argument !== "object" || argument === null || argument instanceof vscode.Uri) return undefined;
  return argument;
}

/** The selection, else the file that is open. */
function selectionOrFile(): CommandArgs {
  const editor = currentEditor();
  if (!editor || !["file", "untitled", "vscode-notebook-cell"].includes(editor.document.uri.scheme)) return {};
  return {
    uri: editor.document.uri.toString(),
    ...(editor.selection.isEmpty ? {} : { range: toWireRange(editor.selection) }),
  };
}

const selection = (): CommandArgs => {
  const args = selectionOrFile();
  return args.range ? args : {};
};

/** The parts of the Git extension's interface (version 1) that we use. */
interface Repository {
  rootUri: vscode.Uri;
  inputBox: { value: string };
}

/** Into the box of the editor's own source control; nothing is committed. */
async function commitMessage({ server, models }: CodeParts, argument: unknown): Promise<void> {
  const repository = await repositoryOf(argument);
  if (!repository) throw new UserFacingError(t("No Git repository is open in this window."));
  const args: CommandArgs = { uri: repository.rootUri.toString(), ...(models.chosen ? { model: models.chosen } : {}) };
  const title = t("Writing a commit message…");
  await vscode.commands.executeCommand("workbench.view.scm");
  const location = vscode.ProgressLocation.Notification;
  await vscode.window.withProgress({ location, title, cancellable: true }, async (_, cancel) => {
    const { text } = await execute<{ text: string }>(await server.client(), "daiku.commitMessage", args, { cancel });
    repository.inputBox.value = text;
  });
}

/** The repository whose button was pressed, else that of the open file, else the first. */
async function repositoryOf(argument: unknown): Promise<Repository | undefined> {
  const git = await vscode.extensions.getExtension("vscode.git")?.activate();
  const api = git?.getAPI?.(1) as
    | { repositories: Repository[]; getRepository(uri: vscode.Uri): Repository | null }
    | undefined;
  const pressed = (argument as { rootUri?: vscode.Uri } | undefined)?.rootUri;
  const uri = pressed ?? currentEditor()?.document.uri;
  return (uri && api?.getRepository(uri)) ?? api?.repositories[0];
}

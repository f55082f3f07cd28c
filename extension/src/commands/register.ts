// Registers all commands; what one of them throws is told to the person in words.

import * as vscode from "vscode";
import { errorText, failureOf, failureWords } from "../server/rpc";
import { type ChatParts, chatCommands } from "./chat";
import { type CodeParts, codeCommands } from "./code";
import { type InlineParts, inlineChat } from "./inlineChat";
import type { PlaybookParts } from "./lessons";
import { type PlanParts, planCommands } from "./plan";
import { playbookCommands } from "./playbook";
import { type ReviewParts, reviewCommands } from "./review";
import { type ServerParts, serverCommands } from "./server";
import { type SessionParts, sessionCommands } from "./sessions";
import type { CommandTable } from "./table";
import { type WorkParts, workCommands } from "./work";

export type CommandParts = ChatParts &
  CodeParts &
  InlineParts &
  PlanParts &
  PlaybookParts &
  ReviewParts &
  ServerParts &
  SessionParts &
  WorkParts;

/** Registers every command; each is gone when its disposable is disposed of. */
export function registerCommands(parts: CommandParts): vscode.Disposable[] {
  const table: CommandTable = {
    ...chatCommands(parts),
    ...codeCommands(parts),
    ...planCommands(parts),
    ...playbookCommands(parts),
    ...reviewCommands(parts),
    ...sessionCommands(parts),
    ...serverCommands(parts),
    ...workCommands(parts),
    "daiku.inlineChat": (argument) => inlineChat(parts, argument),
  };
  return Object.entries(table).map(([name, run]) =>
    vscode.commands.registerCommand(name, async (argument?: unknown) => {
      try {
        return await run(argument);
      } catch (error) {
        const failure = failureOf(error);
        if (!failure) return undefined;
        parts.log.error(`${name}: ${errorText(error)}`);
        void vscode.window.showErrorMessage(failureWords(failure));
        return undefined;
      }
    }),
  );
}

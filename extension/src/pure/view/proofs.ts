// The last exit code of every command in a conversation: what proves an acceptance check.

import type { Chunk } from "../../contract.gen";
import type { Item } from "./items";

export interface CommandResult {
  /** The call that showed it. */
  callId: string;
  exitCode: number;
  /** Files were changed since. */
  stale: boolean;
}

/** As the server compares commands: white space between words does not matter. */
export const normalizeCommand = (command: string): string => command.trim().split(/\s+/).join(" ");

/** A check that asks for diagnostics is no command. */
export const isDiagnostics = (check: string): boolean => /^\s*diagnostics\s*(:|$)/i.test(check);

/** The last outcome of every command that was run, by its plain form. */
export function proofsOf(chunks: readonly Chunk[]): ReadonlyMap<string, CommandResult> {
  const calls = new Map<string, string>();
  const found = new Map<string, CommandResult>();
  for (const chunk of chunks) {
    if (chunk.type === "tool_call" && chunk.data.tool === "shell/run")
      calls.set(chunk.data.id, normalizeCommand(String(chunk.data.args.command ?? "")));
    else if (chunk.type === "tool_response") {
      const command = calls.get(chunk.data.id);
      const exitCode = exitCodeOf(chunk.data.data);
      if (command !== undefined && exitCode !== undefined)
        found.set(command, { callId: chunk.data.id, exitCode, stale: false });
    } else if (chunk.type === "edit")
      for (const [command, shown] of found) found.set(command, { ...shown, stale: true });
  }
  return found;
}

/** The exit code in a tool's structured result, where it has one. */
export function exitCodeOf(data: { [key: string]: unknown } | undefined): number | undefined {
  const code = data?.exitCode ?? data?.exit_code;
  return typeof code === "number" ? code : undefined;
}

/** The same from what the panel shows. */
export function proofsIn(items: readonly Item[]): ReadonlyMap<string, CommandResult> {
  const found = new Map<string, CommandResult>();
  for (const item of items) {
    if (item.kind !== "tool" && item.kind !== "edit") continue;
    if (item.kind === "edit" || item.edits.length > 0)
      for (const [command, shown] of found) found.set(command, { ...shown, stale: true });
    else if (item.tool === "shell/run" && item.exitCode !== undefined) {
      const command = normalizeCommand(String(item.args.command ?? ""));
      found.set(command, { callId: item.id, exitCode: item.exitCode, stale: false });
    }
  }
  return found;
}

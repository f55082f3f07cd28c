// A work item that was taken over: the window that opens its files has its chat open.

import type * as vscode from "vscode";
import { SESSION } from "./openChat";

const KEY = "daiku.takenOver";
/** A window opens within this; later it is opened for something else. */
const MS = 60_000;

interface TakenOver {
  folder: string;
  session: string;
}

/** For the window that is about to be opened. */
export const rememberTakenOver = async (everywhere: vscode.Memento, taken: TakenOver): Promise<void> =>
  everywhere.update(KEY, { ...taken, at: Date.now() });

/** Whether this window was opened for an item that was taken over. Its chat is the one that is open here, then. */
export function isTakenOver(everywhere: vscode.Memento, here: vscode.Memento, folder: string | undefined): boolean {
  const taken = everywhere.get<TakenOver & { at: number }>(KEY);
  if (!taken || taken.folder !== folder || Date.now() - taken.at > MS) return false;
  void everywhere.update(KEY, undefined);
  void here.update(SESSION, taken.session);
  return true;
}

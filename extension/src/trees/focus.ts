// Finds what has the focus in a tree: the editor tells an extension only what is selected.

import * as vscode from "vscode";

let selecting = false;

/** While this holds, a selection was made to learn what has the focus: nothing is to be opened for it. */
export const isOnlySelecting = (): boolean => selecting;

/** A keybinding of ours says so in its arguments: its command is about what has the focus in the tree. */
export const isFromKey = (argument: unknown): boolean =>
  typeof argument === "object" && argument !== null && "focused" in argument;

/** The node of a tree that a menu or a row hands over; none where a command is called otherwise. */
export const nodeIn = <Node extends { kind: string }>(argument: unknown): Node | undefined =>
  typeof argument === "object" && argument !== null && "kind" in argument ? (argument as Node) : undefined;

/** Selects what has the focus in the tree that has it, and answers with that. */
export async function selectFocused<T>(view: vscode.TreeView<T>): Promise<T | undefined> {
  selecting = true;
  try {
    await vscode.commands.executeCommand("list.selectAndPreserveFocus");
    // The command of the item comes on its own way.
    await new Promise((resolve) => setTimeout(resolve, 60));
    return view.selection[0];
  } finally {
    selecting = false;
  }
}

// Ranges of the editor in the form that the protocol has.

import type * as vscode from "vscode";
import type { Range } from "../contract.gen";

/** The editor's own ranges would become arrays in JSON. */
export function toWireRange({ start, end }: vscode.Range): Range {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}

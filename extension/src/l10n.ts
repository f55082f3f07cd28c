// Translates the extension's texts into the language of the editor; English is the key.

import * as vscode from "vscode";

/** The text in the editor's language, with `{0}`, `{1}`, … filled in. */
export function t(text: string, ...values: (string | number)[]): string {
  return vscode.l10n.t(text, ...values);
}

// Opens what an answer points at: a file of the workspace, an address of the web, nothing else.

import * as vscode from "vscode";
import { t } from "../l10n";
import { exists, fileOf } from "./paths";

/** A file of this workspace by its path, at a line counted from 1. */
export async function openFile(path: string, line?: number): Promise<void> {
  const uri = fileOf(path);
  if (!uri || !(await exists(uri))) {
    vscode.window.setStatusBarMessage(t("File not found in this workspace: {0}", path), 5000);
    return;
  }
  const at = line ? new vscode.Range(line - 1, 0, line - 1, 0) : undefined;
  await vscode.window.showTextDocument(uri, { preview: true, ...(at ? { selection: at } : {}) });
}

/** Web addresses only; the editor itself asks before it opens one that the person has not trusted. */
export async function openLink(href: string): Promise<void> {
  if (/^(https?|mailto):/i.test(href)) await vscode.env.openExternal(vscode.Uri.parse(href, true));
}

// Paths of the workspace as files: only what lies inside it.

import path from "node:path";
import * as vscode from "vscode";

/** The file that a workspace path (with `/`, a folder's name first where there are several) names; only inside the workspace. */
export function fileOf(name: string): vscode.Uri | undefined {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const clean = path.posix.normalize(name.replace(/\\/g, "/"));
  if (path.posix.isAbsolute(clean) || /^[a-z]:/i.test(clean)) {
    const uri = vscode.Uri.file(clean);
    return vscode.workspace.getWorkspaceFolder(uri) ? uri : undefined;
  }
  if (clean === ".." || clean.startsWith("../")) return undefined;
  const [first, ...rest] = clean.split("/");
  const named = folders.length > 1 ? folders.find((folder) => folder.name === first) : undefined;
  if (named) return vscode.Uri.joinPath(named.uri, ...rest);
  return folders[0] && vscode.Uri.joinPath(folders[0].uri, clean);
}

/** Whether there is a file or folder at this address. */
export async function exists(uri: vscode.Uri): Promise<boolean> {
  try {
    await vscode.workspace.fs.stat(uri);
    return true;
  } catch {
    return false;
  }
}

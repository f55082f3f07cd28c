// The few calls of VS Code that decide what the extension does: one place, so that tests can see them all.

import path from "node:path";
import * as vscode from "vscode";

/** The settings that somebody set, by their name after `daiku.`; defaults are left to the server. */
export function settingsSet(): Record<string, unknown> {
  const settings = vscode.workspace.getConfiguration("daiku");
  const found: Record<string, unknown> = {};
  for (const key of settingNames()) {
    const seen = settings.inspect(key);
    const value = seen?.workspaceFolderValue ?? seen?.workspaceValue ?? seen?.globalValue;
    if (value !== undefined) found[key] = value;
  }
  return found;
}

function settingNames(): string[] {
  const manifest = vscode.extensions.getExtension("daiku.daiku")?.packageJSON as
    | { contributes?: { configuration?: { properties?: object }[] } }
    | undefined;
  const sections = manifest?.contributes?.configuration ?? [];
  return sections.flatMap((section) => Object.keys(section.properties ?? {})).map((key) => key.replace(/^daiku\./, ""));
}

/** A setting of the extension itself, as the person (never a workspace) set it. */
export function ownSetting<T>(key: string): T | undefined {
  return vscode.workspace.getConfiguration("daiku").inspect<T>(key)?.globalValue;
}

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

export async function exists(uri: vscode.Uri): Promise<boolean> {
  try {
    await vscode.workspace.fs.stat(uri);
    return true;
  } catch {
    return false;
  }
}

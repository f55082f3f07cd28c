// The initialization options for the server: settings with keys, client capabilities, workspace trust.

import * as vscode from "vscode";
import type { InitializationOptions, JsonObject } from "../contract.gen";
import { toSettingsTree, withKeys } from "../pure/server/settings";
import { apiKeys } from "./secrets";

/** The options of the `initialize` request. */
export async function initializationOptions(secrets: vscode.SecretStorage): Promise<InitializationOptions> {
  return {
    settings: withKeys(serverSettings(), await apiKeys(secrets)),
    client: { approvals: true, languageModel: true, editor: true, commands: true, locale: vscode.env.language },
    trusted: vscode.workspace.isTrusted,
  };
}

/** The settings in the server's shape, for its `workspace/configuration`; without keys. */
export const serverSettings = (): JsonObject => toSettingsTree(changedSettings());

/** A setting of the extension itself, as the person (never a workspace) set it. */
export function ownSetting<T>(key: string): T | undefined {
  return vscode.workspace.getConfiguration("daiku").inspect<T>(key)?.globalValue;
}

/** The settings that somebody set, by their name after `daiku.`; defaults are left to the server. */
function changedSettings(): Record<string, unknown> {
  const settings = vscode.workspace.getConfiguration("daiku");
  const found: Record<string, unknown> = {};
  for (const key of settingNames()) {
    const layers = settings.inspect(key);
    const value = layers?.workspaceFolderValue ?? layers?.workspaceValue ?? layers?.globalValue;
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

// What the server is told at its start: settings with keys, what the client offers, whether the workspace is trusted.

import * as vscode from "vscode";
import type { InitializationOptions, JsonObject } from "../contract.gen";
import { settingsSet } from "../editor/paths";
import { nested, withKeys } from "../pure/server/settings";
import { apiKeys } from "./secrets";

export async function initializationOptions(secrets: vscode.SecretStorage): Promise<InitializationOptions> {
  return {
    settings: withKeys(nested(settingsSet()), await apiKeys(secrets)),
    client: { approvals: true, languageModel: true, editor: true, commands: true, locale: vscode.env.language },
    trusted: vscode.workspace.isTrusted,
  };
}

/** The settings in the server's shape, for its `workspace/configuration`; without keys. */
export const serverSettings = (): JsonObject => nested(settingsSet());

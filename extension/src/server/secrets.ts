// API keys: in the editor's secret storage, handed to the server at its start, written nowhere else.

import * as vscode from "vscode";
import { KEYED_PROVIDERS as KEYED } from "../contract.gen";
import { t } from "../l10n";

type Keyed = keyof typeof KEYED;

const storageKey = (provider: Keyed): string => `daiku.apiKey.${provider}`;
const names = Object.keys(KEYED) as Keyed[];

/** All keys that are stored, by provider. */
export async function apiKeys(secrets: vscode.SecretStorage): Promise<Record<string, string>> {
  const found = await Promise.all(names.map(async (name) => [name, await secrets.get(storageKey(name))] as const));
  return Object.fromEntries(found.filter((pair): pair is [Keyed, string] => Boolean(pair[1])));
}

/** Whether a secret's name is that of one of our API keys. */
export const isApiKey = (key: string): boolean => names.some((name) => storageKey(name) === key);

/** Asks for a provider and its key. True when something was stored or removed. */
export async function askForKey(secrets: vscode.SecretStorage): Promise<boolean> {
  const stored = await apiKeys(secrets);
  const picked = await vscode.window.showQuickPick(
    names.map((name) => ({ label: KEYED[name], name, description: stored[name] ? `$(check) ${t("key is set")}` : "" })),
    { title: t("Set API Key"), placeHolder: t("Select a provider") },
  );
  if (!picked) return false;
  const key = await vscode.window.showInputBox({
    title: t("{0} API key", picked.label),
    prompt: stored[picked.name]
      ? t("The key is saved in the editor's secret storage. Leave empty to remove the key.")
      : t("The key is saved in the editor's secret storage."),
    password: true,
    ignoreFocusOut: true,
    validateInput: (value) =>
      /[\s\p{C}]/u.test(value.trim()) ? t("An API key cannot contain spaces or line breaks.") : undefined,
  });
  if (key === undefined) return false;
  if (key.trim()) await secrets.store(storageKey(picked.name), key.trim());
  else await secrets.delete(storageKey(picked.name));
  return true;
}

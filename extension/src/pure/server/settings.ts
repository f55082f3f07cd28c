// The person's settings in the shape of the server's TOML file.

import type { JsonObject } from "../../contract.gen";

/** `commandsAllow` → `commands_allow` */
const snake = (name: string): string => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

/** Settings of the extension alone. */
const OWN = new Set(["server", "panel", "codeLens", "review"]);

/** `{"llm.openai.baseUrl": "x"}` → `{llm: {openai: {base_url: "x"}}}`; `undefined` is left out. */
export function toSettingsTree(flat: Readonly<Record<string, unknown>>): JsonObject {
  const tree: JsonObject = {};
  for (const [key, value] of Object.entries(flat)) {
    const [first, ...rest] = key.split(".");
    if (value === undefined || first === undefined || OWN.has(first)) continue;
    const path = [first, ...rest].map(snake);
    const last = path.pop();
    let at = tree;
    for (const name of path) {
      at[name] ??= {};
      at = at[name] as JsonObject;
    }
    if (last) at[last] = value;
  }
  return tree;
}

/** `settings` with the keys of providers; an empty key is none. */
export function withKeys(settings: JsonObject, keys: Readonly<Record<string, string>>): JsonObject {
  const llm = { ...(settings.llm as JsonObject | undefined) };
  for (const [provider, key] of Object.entries(keys)) {
    if (key) llm[provider] = { ...(llm[provider] as JsonObject | undefined), api_key: key };
  }
  return Object.keys(llm).length ? { ...settings, llm } : settings;
}

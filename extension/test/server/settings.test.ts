// What the server is told at its start: the settings that somebody set, the keys, the trust, what the client offers.

import { beforeEach, expect, it } from "vitest";
import { initializationOptions, ownSetting, serverSettings } from "../../src/server/settings";
import { configure, reset, secretStore, trust } from "../editor/editor";

beforeEach(reset);

it("are the settings that were set, in the server's shape, with the keys beside them", async () => {
  configure("daiku.llm.provider", "openai");
  configure("daiku.llm.openai.baseUrl", "http://lab");
  configure("daiku.review", "after");
  const secrets = secretStore();
  await secrets.store("daiku.apiKey.openai", "k");
  await secrets.store("somebody.else", "not ours");
  const { settings, client, trusted } = await initializationOptions(secrets);
  expect(settings).toEqual({ llm: { provider: "openai", openai: { base_url: "http://lab", api_key: "k" } } });
  expect(client).toEqual({ approvals: true, languageModel: true, editor: true, commands: true, locale: "en" });
  expect(trusted).toBe(true);
});

it("say that the workspace is not trusted where it is not", async () => {
  trust(false);
  expect((await initializationOptions(secretStore())).trusted).toBe(false);
});

it("are told later without the keys, and what the workspace sets goes before what the person sets", () => {
  configure("daiku.llm.provider", "openai");
  configure("daiku.llm.provider", "ollama", "workspaceValue");
  expect(serverSettings()).toEqual({ llm: { provider: "ollama" } });
});

it("of the extension itself are the person's alone", () => {
  configure("daiku.review", "after", "workspaceValue");
  expect(ownSetting("review")).toBeUndefined();
  configure("daiku.review", "before");
  expect(ownSetting("review")).toBe("before");
});

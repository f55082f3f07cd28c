import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import * as vscode from "vscode";
import { configure, daiku, until } from "./lab";

const KEY = "sk-lab-0123456789-very-secret";

/** A service that answers every request with one word, and keeps who asked. */
async function service() {
  const authorized: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    authorized.push(request.headers.authorization);
    if (request.url?.endsWith("/models")) {
      response.setHeader("content-type", "application/json").end(JSON.stringify({ object: "list", data: [] }));
      return;
    }
    const chunk = (delta: object, finish: string | null) =>
      `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
    response.setHeader("content-type", "text/event-stream");
    response.end(`${chunk({ role: "assistant", content: "Hello" }, null)}${chunk({}, "stop")}data: [DONE]\n\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return { url, authorized, stop: () => new Promise((resolve) => server.close(resolve)) };
}

/** The files below a folder that hold `text`. */
function holding(folder: string, text: string): string[] {
  const found: string[] = [];
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const file = path.join(folder, name);
    if (statSync(file, { throwIfNoEntry: false })?.isFile() && readFileSync(file, "latin1").includes(text))
      found.push(file);
  }
  return found;
}

describe("an API key", () => {
  it("reaches the provider, and nothing else that could be read", async () => {
    const app = await daiku();
    app.chat.newChat();
    const provider = await service();
    try {
      await app.secrets.store("daiku.apiKey.compatible", KEY);
      await configure({
        "llm.provider": "compatible",
        "llm.model": "compatible/m",
        "llm.compatible.baseUrl": provider.url,
      });
      const result = await app.chat.send("Say hello", []);
      assert.equal(result?.text, "Hello", JSON.stringify(result));
      assert.ok(provider.authorized.includes(`Bearer ${KEY}`));
      const home = process.env.DAIKU_HOME;
      assert.ok(home);
      const logs = path.dirname(path.dirname(app.logFolder));
      const workspace = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
      for (const folder of [home, logs, workspace]) assert.deepEqual(holding(folder, KEY), []);
      assert.equal(JSON.stringify(app.chat.snapshot()).includes(KEY), false);
    } finally {
      await provider.stop();
      const former = app.server.running();
      await app.secrets.delete("daiku.apiKey.compatible");
      await until("a server without the key", () => app.server.running() !== former && app.server.running());
      await configure({ "llm.compatible.baseUrl": undefined, "llm.provider": "scripted", "llm.model": undefined });
    }
  });
});

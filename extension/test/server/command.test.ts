// The command that starts the server: the person's own, never a workspace's; what is wrong with it is told in words.

import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ServerState } from "../../src/pure/chat/panel";
import { serverCommand } from "../../src/server/command";
import { configure, quietLog as log, reset, Uri } from "../editor/editor";

let storage: string;
const developers = process.env.DAIKU_DEV_SERVER;

beforeEach(() => {
  reset();
  storage = mkdtempSync(path.join(os.tmpdir(), "daiku-command-"));
  delete process.env.DAIKU_DEV_SERVER;
});
afterEach(() => {
  rmSync(storage, { recursive: true, force: true });
  if (developers) process.env.DAIKU_DEV_SERVER = developers;
});

function command() {
  const states: ServerState[] = [];
  const signal = new AbortController().signal;
  const needs = { extension: Uri.file("/nowhere"), storage, log, signal };
  return serverCommand({ ...needs, become: (state) => states.push(state) });
}

it("is the person's own, run in a folder that is no workspace", async () => {
  configure("daiku.server.command", ["daiku", "lsp", "--verbose"]);
  expect(await command()).toEqual({ command: "daiku", args: ["lsp", "--verbose"], cwd: storage });
});

it("is never one that a workspace sets", async () => {
  configure("daiku.server.command", ["./evil"], "workspaceValue");
  await expect(command()).rejects.toThrow("This build of the extension does not include the server.");
});

it("that is not there is named, with the setting to correct", async () => {
  configure("daiku.server.command", ["/nowhere/daiku", "lsp"]);
  await expect(command()).rejects.toMatchObject({
    ...{ message: "Not found: /nowhere/daiku", hint: "Check the daiku.server.command setting." },
  });
});

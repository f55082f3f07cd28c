import assert from "node:assert/strict";
import * as vscode from "vscode";
import { daiku } from "./lab";

/** What people of any editor know Daiku's commands by. */
const PROMISED = [
  ...["newChat", "plan", "research", "generateCode", "runCommands", "explain", "fix", "writeTests", "document"],
  ...["review", "commitMessage", "undo", "stop", "resume", "selectModel", "setApiKey", "playbook", "workItems"],
  ...["exportSession", "showTrace", "showLog", "doctor", "restartServer"],
].map((name) => `daiku.${name}`);

describe("commands", () => {
  it("are all in the palette, and each of them is carried out by somebody", async () => {
    await daiku();
    const extension = vscode.extensions.getExtension("daiku.daiku");
    const offered: string[] = extension?.packageJSON.contributes.commands.map(
      ({ command }: { command: string }) => command,
    );
    assert.deepEqual(
      PROMISED.filter((name) => !offered.includes(name)),
      [],
    );
    const known = new Set(await vscode.commands.getCommands(true));
    assert.deepEqual(
      offered.filter((name) => !known.has(name)),
      [],
    );
  });
});

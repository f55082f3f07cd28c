import assert from "node:assert/strict";
import * as vscode from "vscode";

describe("Daiku in the extension host", () => {
  it("activates and registers its commands", async () => {
    const extension = vscode.extensions.getExtension("daiku.daiku");
    assert.ok(extension, "the extension is not known to the editor");
    await extension.activate();
    const commands = await vscode.commands.getCommands(true);
    assert.ok(commands.includes("daiku.newChat"));
  });
});

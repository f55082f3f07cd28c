// An end that the record contradicts, and the level at which commands run in the sandbox, in the real editor.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { inEditor } from "./lab/lab.mjs";
import { startModel } from "./lab/model.mjs";
import { Panel } from "./panel.mjs";

const FILES = {
  "test_a.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.fail('red')\n",
};
const run = (command) => ({ name: "shell__run", args: { command } });

test("a run that ends against its record says so, and commands in the sandbox are not asked about at that level", {
  timeout: 300_000,
}, async () => {
  const turns = [
    { text: "I run the tests.", calls: [run("python3 -m unittest test_a")] },
    { text: "All tests pass." },
    { text: "A folder.", calls: [run("mkdir -p made/here && touch made/here/file")] },
    { text: "The folder is there." },
  ];
  const model = await startModel(turns, { gap: 2 });
  try {
    await inEditor(
      { name: "verdict", files: FILES, env: { ...model.env, DAIKU_PLAYBOOK__REFLECTIONS: "0" } },
      async ({ workbench, workspace }) => {
        const panel = await Panel.open(workbench);
        await panel.say("Fix the failing test");
        await panel.ended();
        const notice = panel.frame.getByText("Not verified: the last check");
        await notice.first().waitFor();
        assert.match(await panel.text(), /`?python3 -m unittest test_a`? exited with 1/);
        await workbench.shot("verdict-1-not-verified");

        await panel.frame.getByRole("button", { name: /^Permissions/ }).click();
        await workbench.shot("verdict-2-levels");
        await panel.frame.getByRole("menuitemradio", { name: /^Allow sandbox/ }).click();
        await panel.say("Make a folder");
        await panel.ended(2);
        assert.ok(existsSync(path.join(workspace, "made/here/file")), "the command was run");
        assert.equal(await panel.approval.count(), 0, "nobody was asked");
        await workbench.shot("verdict-3-sandbox");
      },
    );
  } finally {
    await model.stop();
  }
});

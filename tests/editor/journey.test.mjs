// One person's way through Daiku: ask, watch it read, allow two edits and a command, look at the diff, undo, reload.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { inEditor, until } from "./lab/lab.mjs";
import { startModel } from "./lab/model.mjs";
import { Panel } from "./panel.mjs";

const FILES = {
  "README.md": "# A small shop\n\nWhat a basket costs.\n",
  "shop/price.py": '"""Prices."""\n\n\ndef total(basket: dict[str, int]) -> int:\n    return sum(basket.values())\n',
  "check.py":
    'from shop.tax import tax\n\nfor amount in (10, 20, 30):\n    print("tax of", amount, "is", tax(amount))\n',
};
const TAX = '"""Tax."""\n\n\ndef tax(amount: int) -> int:\n    """A tenth."""\n    return amount // 10\n';
const ANSWER = `Done. There is **one** new function in \`shop/tax.py:4\`:

\`\`\`python
def tax(amount: int) -> int:
    """A tenth."""
    return amount // 10
\`\`\`

1. The title names the shop.
2. The check prints three lines.

![a picture](http://127.0.0.1:9/canary?d=secret) [a command](command:workbench.action.closeActiveEditor)
`;

const TURNS = [
  { text: "I look at the prices first.", calls: [{ name: "files__read", args: { path: "shop/price.py" } }] },
  {
    text: "There is no tax yet. I add it, and say so in the README.",
    calls: [
      {
        name: "files__edit",
        args: { path: "README.md", edits: [{ search: "# A small shop", replace: "# A taxed shop" }] },
      },
      { name: "files__write", args: { path: "shop/tax.py", content: TAX } },
    ],
  },
  { text: "A place for the receipts.", calls: [{ name: "shell__run", args: { command: "mkdir receipts" } }] },
  { text: "Now the check.", calls: [{ name: "shell__run", args: { command: "python3 check.py" } }] },
  { text: ANSWER },
];

/** What the model was told of the tool calls of its last reply. */
const told = (body) =>
  body.messages.filter((message) => message.role === "tool").map((message) => String(message.content));

test("a person asks, allows, looks, undoes and reloads", { timeout: 300_000 }, async () => {
  const model = await startModel(TURNS, { gap: 25 });
  try {
    await inEditor({ name: "journey", files: FILES, env: model.env }, async ({ workbench, page, workspace }) => {
      const asked = [];
      page.on("request", (request) => asked.push(request.url()));
      const file = (name) => path.join(workspace, name);
      const read = (name) => readFileSync(file(name), "utf8");
      let panel = await Panel.open(workbench);
      await panel.frame.getByRole("button", { name: "Model: openai/lab" }).waitFor({ timeout: 30_000 });
      await workbench.shot("journey-1-welcome");

      await panel.say("Add a tax to the shop, name it in the README and run the check.");
      await panel.frame.locator(".bubble", { hasText: "Add a tax" }).waitFor();
      await panel.approval.waitFor({ timeout: 30_000 });
      await workbench.shot("journey-2-edit-asked");
      assert.match(await panel.approval.innerText(), /A taxed shop/);
      assert.equal(read("README.md"), FILES["README.md"], "nothing is changed before it is allowed");

      await panel.decide("README.md", "Allow Once");
      await panel.decide("tax.py", "Allow Once");
      await panel.approval.filter({ hasText: "mkdir receipts" }).waitFor({ timeout: 30_000 });
      assert.match(read("README.md"), /^# A taxed shop\n/);
      assert.equal(read("shop/tax.py"), TAX);
      await workbench.shot("journey-3-command-asked");
      await panel.decide("mkdir receipts", "Allow Once");

      // Text streams: part of the answer is on the screen while the rest is still on its way.
      const answer = panel.frame.locator(".item-text").last();
      const seen = new Set();
      await until("the answer", async () => {
        seen.add((await answer.innerText().catch(() => "")).length);
        return (await panel.frame.locator(".item-end").count()) > 0;
      });
      assert.ok(seen.size > 3, `the answer came in ${seen.size} steps`);
      await workbench.shot("journey-4-done");
      assert.match(told(model.requests.at(-1)).at(-1), /tax of 30 is 3/, "the check only reads, so nobody is asked");

      // What a stranger wrote into the answer fetches nothing and runs nothing.
      assert.equal(await panel.frame.locator("img").count(), 0);
      assert.equal(await panel.frame.getByRole("link", { name: "a command" }).count(), 0);
      assert.deepEqual(
        asked.filter((url) => url.includes("canary")),
        [],
      );

      await panel.frame.getByRole("button", { name: "Run python3 check.py" }).click();
      await panel.frame.locator(".output", { hasText: "tax of 20 is 2" }).waitFor();
      await panel.frame.getByRole("button", { name: "Open Diff" }).first().click();
      await page.locator(".tab", { hasText: "README.md (before ↔ current)" }).waitFor({ timeout: 15_000 });
      await page.locator(".monaco-diff-editor .view-line", { hasText: "taxed" }).first().waitFor({ timeout: 15_000 });
      await page.locator(".monaco-diff-editor .view-line", { hasText: "small" }).first().waitFor({ timeout: 15_000 });
      await workbench.shot("journey-5-diff");

      await panel.frame.getByRole("button", { name: "Undo This and All Later Changes" }).first().click();
      await until(
        "the files to be as they were",
        () => read("README.md") === FILES["README.md"] && !existsSync(file("shop/tax.py")),
      );
      await panel.frame.locator(".file-line.undone").nth(1).waitFor();
      await workbench.shot("journey-6-undone");

      const before = await panel.text();
      await workbench.reload();
      panel = new Panel(workbench, await workbench.webview(".item-end"));
      await panel.frame.locator(".file-line.undone").nth(1).waitFor({ timeout: 15_000 });
      await panel.frame.getByRole("button", { name: "Run python3 check.py" }).click();
      assert.equal(await panel.text(), before, "the conversation is as it was");
      await workbench.shot("journey-7-reloaded");

      await panel.say("Thank you.");
      await panel.ended(2);
      assert.ok(
        told(model.requests.at(-1)).length > 0 && JSON.stringify(model.requests.at(-1)).includes("Add a tax"),
        "the model remembers",
      );
      await workbench.command("Daiku: Chat History");
      await panel.frame.locator(".session-open", { hasText: "Add a tax" }).waitFor();
      await workbench.shot("journey-8-history");
    });
  } finally {
    await model.stop();
  }
});

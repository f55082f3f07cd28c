// The model's todo list in the real editor: one card that changes in place, folded by keyboard, there after a reload.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inEditor } from "./lab/lab.mjs";
import { startModel } from "./lab/model.mjs";
import { Panel } from "./panel.mjs";

const list = (...statuses) => ({
  name: "todo__write",
  args: {
    items: ["Read the prices", "Mend the rounding", "Run the tests"].map((title, n) => ({
      title,
      status: statuses[n],
    })),
  },
});

test("a todo list is one card that changes in place, is folded by keyboard and comes back, in Japanese", {
  timeout: 200_000,
}, async () => {
  const turns = [
    { text: "First the list.", calls: [list("in_progress", "pending", "pending")] },
    { text: "Read.", calls: [list("completed", "in_progress", "pending")] },
    { text: "The rounding is next." },
  ];
  const model = await startModel(turns, { gap: 2 });
  try {
    await inEditor(
      { name: "todo", files: { "price.py": "PRICE = 1\n" }, env: model.env },
      async ({ workbench, page }) => {
        await page.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: "ja" }));
        await workbench.reload();
        const panel = await Panel.open(workbench);
        await panel.say("Mend the rounding");
        await panel.ended();
        const cards = panel.frame.locator(".todo");
        await cards.getByText("1/3").waitFor();
        assert.equal(await cards.count(), 1);
        assert.equal(await cards.locator('[aria-current="step"]').innerText(), "Mend the rounding");
        await workbench.shot("todo-1-open");
        await cards.locator(".plan-head").focus();
        await page.keyboard.press("Enter");
        assert.equal(await cards.locator("li").count(), 0);
        assert.equal(await cards.locator(".plan-head").getAttribute("aria-expanded"), "false");
        await workbench.shot("todo-2-folded");
        await workbench.reload();
        const again = await Panel.open(workbench);
        await again.frame.locator(".todo").getByText("1/3").waitFor();
      },
    );
  } finally {
    await model.stop();
  }
});

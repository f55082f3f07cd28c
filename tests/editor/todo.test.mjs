// The model's todo list in the real editor: one card that changes in place, folded by keyboard, there after a reload;
// before it, a chat of another editor, made by `daiku acp` and opened here.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { at } from "../../.dev/places.mjs";
import { must } from "../../.dev/run.mjs";
import { inEditor } from "./lab/lab.mjs";
import { startModel } from "./lab/model.mjs";
import { Panel } from "./panel.mjs";

const NOT_CHECKED = "\n> ⚠ Not checked: no test, build, or linter passed after the last change.\n\n";
const call = (name, args) => ({ name, args });
const list = (...statuses) =>
  call("todo__write", {
    items: ["Read the prices", "Mend the rounding", "Run the tests"].map((title, n) => ({
      title,
      status: statuses[n],
    })),
  });
const STEPS = [{ name: "Raise the price", description: "Ten instead of one.", acceptance: ["grep 10 price.py"] }];
const ELSEWHERE = [
  { text: "First a plan.", calls: [call("plan__propose", { goal: "A price of ten", name: "値上げ", steps: STEPS })] },
  { calls: [call("files__edit", { path: "price.py", edits: [{ search: "PRICE = 1\n", replace: "PRICE = 10\n" }] })] },
  { calls: [call("shell__run", { command: "grep -n PRICE price.py" })] },
  { text: "The price is ten." },
];

/** One turn of `daiku acp` in the same folder and home, by its library's own client, which allows everything. */
async function turnElsewhere(workspace, text, env) {
  const python = process.env.DAIKU_DEV_PYTHON || "python3";
  const roots = [at("server"), at()].join(path.delimiter);
  const options = { cwd: at(), env: { ...process.env, PYTHONPATH: roots, ...env } };
  return JSON.parse(await must("a turn of daiku acp", python, ["-m", "tests.acp.turn", workspace, text], options));
}

test("a chat made by ACP opens in the panel; a todo list is one card, folded by keyboard, and comes back; Japanese", {
  timeout: 200_000,
}, async () => {
  const turns = [
    ...ELSEWHERE,
    { text: "First the list.", calls: [list("in_progress", "pending", "pending")] },
    { text: "Read.", calls: [list("completed", "in_progress", "pending")] },
    { text: "The rounding is next." },
  ];
  const model = await startModel(turns, { gap: 2 });
  try {
    await inEditor(
      { name: "todo", files: { "price.py": "PRICE = 1\n" }, env: model.env },
      async ({ workbench, page, workspace, home }) => {
        const told = await turnElsewhere(workspace, "値段を10にして", { ...model.env, DAIKU_HOME: home });
        assert.deepEqual(told, {
          ended: "end_turn",
          said: `First a plan.The price is ten.${NOT_CHECKED}`,
          plan: ["Raise the price"],
          asked: 1,
          wrote: ["price.py"],
          terminals: 1,
        });
        assert.equal(readFileSync(path.join(workspace, "price.py"), "utf8"), "PRICE = 10\n");
        await page.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: "ja" }));
        await workbench.reload();
        const panel = await Panel.open(workbench);
        await workbench.command("Daiku: Chat History");
        await panel.frame.locator(".session-open", { hasText: "値段を10にして" }).click();
        await panel.ended();
        const items = panel.items();
        await items.locator(".bubble", { hasText: "値段を10にして" }).waitFor();
        await items.locator(".item-text", { hasText: "The price is ten." }).waitFor();
        await items.locator(".card.plan", { hasText: "Raise the price" }).waitFor();
        await items.getByRole("button", { name: "grep -n PRICE price.py" }).click();
        await items.locator(".output", { hasText: "1:PRICE = 10" }).waitFor();
        await workbench.shot("todo-0-from-acp");
        await items.getByRole("button", { name: "差分を開く" }).click();
        await page.locator(".monaco-diff-editor .view-line", { hasText: "PRICE = 10" }).first().waitFor();
        await workbench.shot("todo-0-diff");

        await workbench.command("Daiku: New Chat");
        await panel.frame.locator(".welcome").waitFor();
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

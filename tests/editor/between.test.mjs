// What stays between chats, and what stands beside them, in the real editor: changes that wait, a request at the
// selection typed as fast as can be, a failed request made once more, the doctor; in English and in Japanese.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { inEditor, until } from "./lab/lab.mjs";
import { startModel } from "./lab/model.mjs";
import { Panel } from "./panel.mjs";

const FILES = {
  "price.py": "PRICE = 1\n\n\ndef price(count):\n    return PRICE * count\n",
  "big.py": "BIG = 1\nSMALL = 2\n",
};
const edit = (path_, search, replace) => ({ name: "files__edit", args: { path: path_, edits: [{ search, replace }] } });
const waiting = (page, text) => page.locator('[id="daiku.daiku.daiku.review"]', { hasText: text });
const said = ({ messages }) => JSON.stringify(messages.filter(({ role }) => role === "user").at(-1));

test("changes wait whichever chat is open, and a request at the selection is whole and has its answer seen", {
  timeout: 300_000,
}, async () => {
  const turns = [
    { text: "I make it bigger.", calls: [edit("big.py", "BIG = 1\n", "BIG = 2\n")] },
    { text: "It is bigger." },
    { text: "It is what one piece costs." },
    { text: "Ten.", calls: [edit("price.py", "PRICE = 1\n", "PRICE = 10\n")] },
    { text: "It costs ten now." },
  ];
  const model = await startModel(turns, { gap: 2 });
  const settings = { "daiku.review": "after" };
  try {
    await inEditor(
      { name: "between", files: FILES, env: model.env, settings },
      async ({ workbench, page, workspace }) => {
        const read = (name) => readFileSync(path.join(workspace, name), "utf8");
        const panel = await Panel.open(workbench);
        await panel.say("Make it bigger");
        await panel.ended();
        await waiting(page, "1 change in 1 file").waitFor();
        await workbench.command("Daiku: New Chat");
        await panel.frame.locator(".welcome").waitFor();
        await page.waitForTimeout(500);
        assert.equal(await waiting(page, "1 change in 1 file").count(), 1);
        await workbench.shot("between-1-new-chat");

        await workbench.openFile("price.py", "PRICE");
        for (const [n, words] of ["What is this, from the first to the last letter?", "make it cost 10"].entries()) {
          await page.locator(".monaco-editor .view-line", { hasText: "PRICE = 1" }).first().click();
          await page.keyboard.press("Control+F6");
          await page.locator(".quick-input-widget:visible", { hasText: "Edit price.py" }).waitFor();
          await page.keyboard.type(words, { delay: 0 });
          await page.keyboard.press("Enter");
          await until("the request to arrive", () => model.requests.some((request) => said(request).includes(words)));
          if (n === 0) {
            await workbench.notice("It is what one piece costs.").waitFor();
            await workbench.shot("between-2-answer");
            await page.locator(".tab.active", { hasText: "price.py" }).waitFor();
          }
        }
        await until("the edit, without a question", () => read("price.py").includes("PRICE = 10"));
        await waiting(page, "2 changes in 2 files").waitFor();
        await workbench.statusItem(/^Ln 1,/).waitFor();
        await workbench.shot("between-3-in-place");
        await panel.frame.locator(".welcome").waitFor();
        const others = model.requests.slice(2).map((request) => JSON.stringify(request.messages));
        assert.ok(!others.some((text) => text.includes("Make it bigger")), "what another chat said is not sent along");
      },
    );
  } finally {
    await model.stop();
  }
});

test("a failed request is made once more by a button, and the doctor says what is wrong, in Japanese", {
  timeout: 300_000,
}, async () => {
  const model = await startModel([{ status: 401 }, { text: "直りました。" }], { gap: 2 });
  try {
    await inEditor({ name: "between-ja", files: FILES, env: model.env }, async ({ workbench, page }) => {
      await page.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: "ja" }));
      await workbench.reload();
      // By key, as soon as the editor knows the key.
      const frame = await until("the chat", async () => {
        await page.keyboard.press("Control+F1");
        return workbench.webview("textarea.composer-text", 2000).catch(() => undefined);
      });
      const box = frame.locator("textarea.composer-text");
      await box.click();
      await box.pressSequentially("直して");
      await page.keyboard.press("Enter");
      await frame.locator(".trouble").waitFor({ timeout: 60_000 });
      await workbench.shot("between-4-failed");
      await frame.getByRole("button", { name: "再試行" }).first().click();
      await frame.getByRole("log").getByText("直りました。").waitFor({ timeout: 60_000 });
      await box.click();
      await page.keyboard.press("ArrowUp");
      await until("the request to be recalled", async () => (await box.inputValue()) === "直して");
      await workbench.shot("between-5-again");
      await workbench.command("Daiku: 診断を実行");
      const doctor = await workbench.webview("main h1");
      await doctor.locator("h2", { hasText: "サンドボックス" }).waitFor({ timeout: 60_000 });
      await workbench.shot("between-6-doctor");
      await doctor.getByText("トレースはこのコンピューターにだけ保存されます").scrollIntoViewIfNeeded();
      await doctor.getByText("記憶はオフです。").waitFor();
      await workbench.shot("between-7-doctor-end");
    });
  } finally {
    await model.stop();
  }
});

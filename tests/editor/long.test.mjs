// A conversation of 10,000 messages in the real editor: how long until its last screen is there, and what stands still.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { at } from "../../.dev/places.mjs";
import { inEditor } from "./lab/lab.mjs";
import { startModel } from "./lab/model.mjs";
import { Panel } from "./panel.mjs";

const MESSAGES = 10_000;
const LAST = `in request ${MESSAGES / 5 - 1}.`;

/** Writes the conversation into the home folder of an editor that is open. */
function writeLong(home, workspace) {
  const options = { cwd: at(), env: { ...process.env, PYTHONPATH: at("server") } };
  const python = process.env.DAIKU_DEV_PYTHON || "python3";
  execFileSync(python, ["-m", "tests.services.long_session", home, workspace, String(MESSAGES)], options);
}

/** Collects the blocks of a page's own thread, in milliseconds. */
const watchBlocks = (frame) =>
  frame.evaluate(() => {
    globalThis.blocks = [];
    new PerformanceObserver((list) => globalThis.blocks.push(...list.getEntries().map((one) => one.duration))).observe({
      entryTypes: ["longtask"],
    });
  });
const longest = (frame) => frame.evaluate(() => Math.round(Math.max(0, ...globalThis.blocks)));

test("the last screen of 10,000 messages is there within two seconds, and older ones come as the person scrolls", {
  timeout: 300_000,
}, async (t) => {
  const model = await startModel([]);
  try {
    await inEditor({ name: "long", files: { "a.py": "A = 1\n" }, env: model.env }, async (editor) => {
      const { workbench, page, home, workspace } = editor;
      const panel = await Panel.open(workbench);
      await panel.frame.getByRole("button", { name: "Model: openai/lab" }).waitFor({ timeout: 30_000 });
      writeLong(home, workspace);
      await workbench.command("Daiku: Chat History");
      const row = panel.frame.locator(".history .session-open", { hasText: "A long conversation" });
      await row.waitFor();
      await watchBlocks(panel.frame);
      const start = performance.now();
      await row.click();
      await panel.frame.getByRole("log").getByText(LAST).waitFor({ timeout: 60_000 });
      const ms = Math.round(performance.now() - start);
      t.diagnostic(`${ms} ms to the last screen, longest block of the panel ${await longest(panel.frame)} ms`);
      await workbench.shot("long-1-end");
      assert.ok(ms < 2000, `${ms} ms to the last screen`);

      // From the top of what is there, the part before it comes by itself, and what was read stays where it was.
      const items = panel.frame.locator(".items");
      const first = () => panel.frame.locator(".item-user .said").first().innerText();
      const oldest = Number(/Request (\d+)/.exec(await first())[1]);
      for (let n = 0; n < 60 && Number(/Request (\d+)/.exec(await first())[1]) > oldest - 60; n++) {
        await items.hover();
        await page.mouse.wheel(0, -4000);
        await page.waitForTimeout(100);
      }
      const reached = Number(/Request (\d+)/.exec(await first())[1]);
      assert.ok(reached <= oldest - 60, `from request ${oldest} only ${reached} was reached`);
      await workbench.shot("long-2-scrolled");
      t.diagnostic(`longest block of the panel while scrolling ${await longest(panel.frame)} ms`);
    });
  } finally {
    await model.stop();
  }
});

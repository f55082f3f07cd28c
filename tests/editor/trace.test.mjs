// The trace of a chat in the real editor: a tree gone through by keyboard, which leads back to the chat; in Japanese.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inEditor } from "./lab/lab.mjs";
import { startModel } from "./lab/model.mjs";
import { Panel } from "./panel.mjs";

const call = (name, args) => ({ name, args });

test("a trace shows what agents, models and tools took, and leads to their places in the chat", {
  timeout: 200_000,
}, async () => {
  const turns = [
    { text: "I look.", calls: [call("files__read", { path: "price.py" })] },
    {
      text: "Somebody else looks too.",
      calls: [call("agent__handoff", { agent: "researcher", request: "Look at it." })],
    },
    { text: "It is a price." },
    { text: "That one is missing.", calls: [call("files__read", { path: "missing.py" })] },
    { text: "All has been looked at." },
  ];
  const model = await startModel(turns, { gap: 2 });
  try {
    await inEditor(
      { name: "trace", files: { "price.py": "PRICE = 1\n" }, env: model.env },
      async ({ workbench, page }) => {
        const panel = await Panel.open(workbench);
        await panel.say("Look at the price");
        await panel.ended();
        await workbench.command("Daiku: Show Trace");
        const trace = await workbench.webview("[role=treegrid]");
        const rows = trace.locator("#rows [role=row]");
        assert.match(await trace.locator("#summary").innerText(), /Agents: \d+ · Model calls: \d+ · Tool calls: 3/);
        assert.equal(await rows.first().getAttribute("aria-level"), "1");
        await workbench.shot("trace-1-open");
        // By keyboard: the run is folded and unfolded, then the missing file is gone to.
        await rows.first().focus();
        await page.keyboard.press("ArrowLeft");
        assert.equal(await rows.filter({ visible: true }).count(), 1);
        await page.keyboard.press("ArrowRight");
        assert.ok((await rows.filter({ visible: true }).count()) > 5);
        const failed = rows.filter({ hasText: "files/read" }).last();
        assert.match((await failed.getAttribute("class")) ?? "", /failed/);
        for (let n = 0; n < 40 && !(await failed.evaluate((row) => row === document.activeElement)); n++)
          await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        const shown = panel.frame.locator(".tool", { hasText: "missing.py" });
        await shown.first().waitFor();
        await panel.frame.waitForFunction(() =>
          document.activeElement?.closest(".tool")?.textContent.includes("missing.py"),
        );
        await workbench.shot("trace-2-place");
        await page.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: "ja" }));
        await workbench.reload();
        await Panel.open(workbench);
        await workbench.command("Daiku: Show Trace");
        const again = await workbench.webview("[role=treegrid]");
        await again.getByText("モデルの呼び出し").first().waitFor();
        await workbench.shot("trace-3-japanese");
      },
    );
  } finally {
    await model.stop();
  }
});

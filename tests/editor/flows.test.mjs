// The examples that Daiku was asked for, in the real editor: thirteen steps in Japanese, and four agents in a row.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { inEditor, until } from "./lab/lab.mjs";
import { startPlayed } from "./lab/played.mjs";
import { Panel } from "./panel.mjs";

/** By key, as soon as the editor knows the key. */
async function openChat(workbench) {
  return until("the chat", async () => {
    await workbench.page.keyboard.press("Control+F1");
    return workbench.webview("textarea.composer-text", 2000).catch(() => undefined);
  });
}

/**
 * Answers what is asked, by clicks, until `count` runs have ended: approvals by their first button, questions by `choose`.
 * Resolves with the cards' titles and texts in order. A picture of each card is taken.
 */
async function answerUntil(panel, count, { choose = [], shot }) {
  const asked = [];
  const { frame } = panel;
  const open = frame.locator(".card.approval, .card.question:not(.answered)").first();
  await until(
    "the run to end",
    async () => {
      if ((await frame.locator(".item-end").count()) >= count) return true;
      if (!(await open.count())) return false;
      const text = await open.innerText().catch(() => "");
      if (!text) return false;
      // The card is deaf for its first half second, to clicks that were meant for something else.
      await panel.workbench.page.waitForTimeout(600);
      await panel.workbench.shot(`${shot}-asked-${asked.length + 1}`);
      const isQuestion = (await open.getAttribute("class")).includes("question");
      const card = await open.elementHandle();
      const yes = isQuestion
        ? open.getByRole("button", { name: choose[0], exact: true })
        : open.locator("button.primary");
      await yes.click();
      await until("the answer to be taken", () =>
        card.evaluate((it) => !it.isConnected || it.classList.contains("answered")),
      );
      asked.push({ title: text.split("\n")[0], text });
      return false;
    },
    90_000,
  );
  return asked;
}

async function flow(name, files, settings, way) {
  const played = await startPlayed(name);
  try {
    await inEditor({ name: `flow-${name}`, files, env: played.env, settings }, way);
  } finally {
    await played.stop();
  }
}

test("a game in thirteen steps, in Japanese", { timeout: 200_000 }, async () => {
  await flow("thirteen_steps", { "企画.md": "# ゲーム\n" }, {}, async ({ workbench, page, workspace }) => {
    // As with a language pack: the editor says that it is Japanese.
    await page.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: "ja" }));
    await workbench.reload();
    const frame = await openChat(workbench);
    const panel = new Panel(workbench, frame);
    await panel.widen(430);
    await panel.say("ゲームを実装して");
    await panel.ended(1);
    await workbench.shot("flow-thirteen-1-plan");
    assert.deepEqual(readdirSync(workspace), ["企画.md"], "planning writes nothing");

    const plan = frame.locator(".card.plan");
    assert.match(await plan.innerText(), /ゲーム実装\s+0\/3\s+承認待ち[\s\S]+環境構築[\s\S]+コア実装[\s\S]+テスト/);
    await frame.locator(".item-text", { hasText: "この計画で進めますか?" }).waitFor();

    await panel.say("はい、お願いします");
    const asked = await answerUntil(panel, 2, { shot: "flow-thirteen-2" });
    await workbench.shot("flow-thirteen-3-done");
    assert.deepEqual(
      asked.map(({ title }) => title),
      ["この計画で進めますか?", "この変更を適用しますか?", "この変更を適用しますか?", "このコマンドを実行しますか?"],
      "the check only reads, so nobody is asked",
    );
    const about = ["承認", "package.json", "index.html", "mkdir -p node_modules/engine"];
    for (const [n, what] of about.entries()) assert.ok(asked[n].text.includes(what), `${asked[n].text}\nnames ${what}`);

    const read = (name) => readFileSync(path.join(workspace, name), "utf8");
    assert.deepEqual(JSON.parse(read("package.json")), { name: "game", version: "1.0.0" });
    assert.match(read("index.html"), /<title>ゲーム<\/title>/);
    assert.equal(read("node_modules/engine/package.json"), read("package.json"), "the command was really run");
    const text = await panel.text();
    assert.match(text, /ステップ1『環境構築』が完了しました。[^\n]+次にステップ2『コア実装』に進みますか\?/);
    assert.match(
      await plan.innerText(),
      /1\/3\s+進行中[\s\S]+環境構築\s+python3 -m json\.tool package\.json\s+終了コード 0/,
    );
    assert.doesNotMatch(text, /\b(tasks|task_loop|finished|exit code|Step)\b/, "what a person reads is Japanese");

    // The check's exit code leads to the command that was run for it.
    await plan.getByRole("button", { name: "終了コード 0" }).click();
    await frame.locator(".output", { hasText: '"version": "1.0.0"' }).waitFor();
    await workbench.shot("flow-thirteen-4-proof");
  });
});

test("four agents from a goal to a report", { timeout: 200_000 }, async () => {
  await flow("four_agents", { "README.md": "# Numerals\n" }, {}, async ({ workbench, workspace }) => {
    const file = (name) => path.join(workspace, name);
    const read = (name) => readFileSync(file(name), "utf8");
    await workbench.command("Daiku: Plan…");
    await workbench.answer("Write a small library that adds Roman numerals, with a test.");
    const panel = new Panel(workbench, await workbench.webview("textarea.composer-text"));
    await panel.widen(430);
    const plan = panel.frame.locator(".card.plan");
    await plan.getByRole("button", { name: "Approve and Start" }).waitFor({ timeout: 30_000 });
    await panel.ended(1);
    await workbench.shot("flow-four-1-plan");
    const summary = panel.frame.getByRole("log").getByText("only numerals up to MMMCMXCIX are meant.");
    assert.equal(await summary.count(), 1, "the summary is said once");
    assert.ok(!existsSync(file("roman.py")), "a plan writes nothing");

    await plan.getByRole("button", { name: "Approve and Start" }).click();
    const asked = await answerUntil(panel, 2, { choose: ["Go on"], shot: "flow-four-2" });
    await workbench.shot("flow-four-3-report");
    assert.deepEqual(
      asked.map(({ title }) => title),
      [
        "Allow network access?",
        "Apply this change?",
        "Apply this change?",
        "Step “Write roman.py and its test.” is done. Go on with step 2, “Show that it works from the command line.”?",
      ],
      "the tests only read, so nobody is asked",
    );
    assert.match(asked[2].text, /roman\.py\s+\+3\s+−1/, "the repair is shown before it is made");
    assert.match(read("roman.py"), /for n, after in zip/);
    assert.match(read("test_roman.py"), /^"""The subtractive notation counts\."""/);
    const rerun = spawnSync("python3", ["roman.py", "XIV", "IX"], { cwd: workspace, encoding: "utf8" });
    assert.equal(rerun.stdout, "23\n", "what is on disk works without Daiku");

    assert.deepEqual(await panel.frame.locator(".handoff .thought-head").allInnerTexts().then(withoutSteps), [
      "Researcher finished",
      "Coder finished",
      "Runner finished",
      "Coder finished",
      "Runner finished",
      "Reporter finished",
    ]);
    assert.match(await plan.innerText(), /2\/2\s+done[\s\S]+test_roman\.py\s+exit code 0[\s\S]+XIV IX\s+exit code 0/);
    const claims = await panel.frame.locator(".card.report .claims li").allInnerTexts();
    assert.match(claims[0], /^Its test passes\.\s+python3 test_roman\.py\s+exit code 0$/);
    assert.match(claims[1], /^It is easy to read\.\s+not verified$/, "a claim without proof is shown as one");

    // Proofs lead to the commands that were run; the coder was given what was found.
    await panel.frame.locator(".card.report .proof", { hasText: "python3 test_roman.py" }).click();
    await panel.frame.locator(".output", { hasText: /\bok\b/ }).waitFor();
    await workbench.shot("flow-four-4-proof");
    await plan.getByRole("button", { name: "exit code 0" }).last().click();
    await panel.frame.locator(".output", { hasText: "23" }).waitFor();
    const coder = panel.frame.locator(".handoff", { hasText: "Coder finished" }).first();
    await coder.getByRole("button").first().click();
    await coder.getByText("Input").click();
    await coder.getByText("Subtractive notation").first().waitFor();
    assert.match(await coder.innerText(), /Write a small library that adds Roman numerals/);
    await workbench.shot("flow-four-5-given");
  });
});

/** Who worked, without the badge of the step and its name. */
const withoutSteps = (texts) => texts.map((text) => text.replace(/^Step \d+\s+/, "").split("\n")[0]);

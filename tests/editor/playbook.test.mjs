// The playbook in the real editor: what a run taught is seen with its evidence, kept, reworded and taken back by key; Japanese.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { at } from "../../.dev/places.mjs";
import { inEditor } from "./lab/lab.mjs";
import { Panel } from "./panel.mjs";

const shell = (command) => ({ tool: "shell/run", args: { command } });
const write = (path, content) => ({ tool: "files/write", args: { path, content } });
/** Which line answers is said by the message before it: a person's words, or the result of a command. */
const SCRIPT = [
  { when: "Check", text: "I test it.", calls: [shell("make test")] },
  { when: "make", text: "So it is called otherwise.", calls: [shell("python3 -m unittest -q")] },
  { when: "Ran 1 test", text: "All tests pass." },
  { when: "green", text: "I know how [batc-00001].", calls: [shell("python3 -m unittest -q")] },
  { when: "Ran 1 test", text: "They are green [batc-00001]." },
  { when: "Put the price down", text: "By [env-00001].", calls: [write("price.py", "PRICE = 1.5\n")] },
  { when: "price.py", text: "It stands there [env-00001]." },
  { when: "No, always", text: "Understood." },
];
const FILES = {
  "test_price.py":
    "import unittest\n\n\nclass Price(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(1, 1)\n",
  "play.jsonl": SCRIPT.map((line) => JSON.stringify(line)).join("\n"),
};
const LEARNT = "Run the tests by `python3 -m unittest -q`";
const TIDY = "Keep prices in cents, never as floats.";
const EURO = "Prices are floats of euros.";
const SHORT = "Name branches after their issue.";

const run = (program, argv, options) => {
  const done = spawnSync(program, argv, options);
  assert.equal(done.status, 0, `${argv.join(" ")}: ${done.stdout}${done.stderr}`);
  return String(done.stdout);
};
const git = (cwd, ...argv) => run("git", ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", ...argv], { cwd });

/** The view as a person sees it. */
const viewOf = (page) => {
  const pane = page.locator(".pane", {
    has: page.locator(".pane-header[aria-label^='Playbook'], .pane-header[aria-label^='プレイブック']"),
  });
  return {
    pane,
    header: (name) => page.locator(`.pane-header[aria-label^='${name}']`),
    row: (text) => pane.locator(".monaco-list-row", { hasText: text }).first(),
    focused: (text) => pane.locator(".monaco-list-row.focused", { hasText: text }).first(),
  };
};

test("what a run taught is decided by key with its evidence in sight, told to the next, found and undone; Japanese", {
  timeout: 500_000,
}, async () => {
  const env = { DAIKU_LLM__MODEL: "scripted/play.jsonl" };
  const settings = { "daiku.approvals.command": "allow", "daiku.approvals.edit": "allow" };
  await inEditor({ name: "playbook", files: FILES, env, settings }, async ({ workbench, page, workspace, home }) => {
    for (const argv of [
      ["init", "-qb", "main"],
      ["add", "-A"],
      ["commit", "-qm", "All"],
    ])
      git(workspace, ...argv);
    const daiku = (...argv) =>
      run(process.env.DAIKU_DEV_PYTHON || "python3", ["-m", "daiku", "playbook", ...argv], {
        cwd: workspace,
        env: { ...process.env, DAIKU_HOME: home, PYTHONPATH: at("server"), LANG: "C.UTF-8" },
      });
    const { pane, row, focused, header } = viewOf(page);
    const panel = await Panel.open(workbench, { width: 520 });
    await workbench.command("Daiku: Playbook");
    await pane.getByText("No lessons yet.").waitFor();
    await workbench.shot("playbook-1-empty");

    // A run fails, corrects itself, and that is proposed; its evidence leads to the place in the chat.
    const said = (text, where = panel) =>
      where.frame.locator(".item-text", { hasText: text }).first().waitFor({ timeout: 60_000 });
    await panel.say("Check that the tests pass");
    await said("All tests pass.");
    await row("1 lesson to review").waitFor();
    await row(LEARNT).waitFor();
    await workbench.shot("playbook-2-learnt");
    await row("source").click();
    await panel.frame.waitForFunction(() =>
      document.activeElement?.closest(".tool")?.textContent.includes("make test"),
    );
    await workbench.shot("playbook-3-evidence");
    await header("Chat").click();

    daiku("add", "--section", "code_patterns_and_apis", "--propose", TIDY);
    daiku("add", "--section", "project_conventions", "--propose", SHORT);
    await row("3 lessons to review").waitFor();
    await row(TIDY).waitFor();
    assert.match((await row(TIDY).getAttribute("aria-label")) ?? "", /new, Code patterns and APIs/);

    // By keyboard: the difference is looked at, one is accepted, one is edited and accepted, one is rejected.
    await row("3 lessons to review").click();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowDown");
    await focused(LEARNT).waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".tab", { hasText: "Lesson (new)" }).waitFor();
    await page.locator(".monaco-diff-editor .view-lines", { hasText: "unittest" }).first().waitFor();
    await workbench.shot("playbook-4-difference");
    await page.keyboard.press("Space");
    await row("2 lessons to review").waitFor();
    await page.locator(".tab", { hasText: "Lesson (new)" }).waitFor({ state: "detached" });
    await row("Build and test commands").waitFor();
    await focused(TIDY).waitFor();
    await page.keyboard.press("F2");
    await workbench.answer("Keep prices in whole cents.");
    await row("1 lesson to review").waitFor();
    await focused(SHORT).waitFor();
    await page.keyboard.press("Delete");
    await row(/lessons? to review/).waitFor({ state: "detached" });
    assert.match(daiku("list"), /Keep prices in whole cents/);
    await workbench.shot("playbook-5-accepted");

    // One is disabled and enabled, its history is seen, and the last changes are undone.
    await row("Keep prices in whole cents.").click();
    await page.keyboard.press("Space");
    await row(/Keep prices in whole cents.*disabled/).waitFor();
    await workbench.shot("playbook-6-disabled");
    await page.keyboard.press("Space");
    await row(/Keep prices in whole cents.*disabled/).waitFor({ state: "detached" });
    await page.keyboard.press("ArrowRight");
    await row(/^new/).waitFor();
    await workbench.shot("playbook-7-history");
    await page.keyboard.press("Control+z");
    await row(/Keep prices in whole cents.*disabled/).waitFor();
    await page.keyboard.press("Control+z");
    await row(/Keep prices in whole cents.*disabled/).waitFor({ state: "detached" });
    await page.keyboard.press("Control+z");
    await row("Keep prices in whole cents.").waitFor({ state: "detached" });
    assert.doesNotMatch(daiku("list", "--all"), /Keep prices/);

    // The next session is told the lesson, is right at once and cites it; the line leads back to it.
    const next = await Panel.open(workbench, { width: 520 });
    await workbench.command("Daiku: New Chat");
    await next.say("Are the tests green?");
    await said("They are green", next);
    await next.frame.locator(".lessons .thought-head", { hasText: "used 1 lesson" }).click();
    await workbench.shot("playbook-8-used");
    await next.frame.locator(".lessons li button", { hasText: "batc-00001" }).click();
    await focused(LEARNT).waitFor();
    await row(/\+1 −0/).waitFor();
    await row("Helpful").waitFor(); // it unfolds as it takes the focus

    // Work that a lesson led to is taken back: it rests. What the person says of it is proposed, and accepted by keyboard.
    assert.equal(daiku("add", "--section", "environment", EURO).trim(), "env-00001");
    await next.say("Put the price down");
    await said("It stands there", next);
    await next.frame.getByRole("button", { name: "Undo All" }).last().click();
    await next.frame.locator(".card.restored").waitFor();
    await header("Chat").click();
    await row(/\+0 −1.*Prices are floats of euros.*suspended/).waitFor();
    await workbench.shot("playbook-8-rests");
    const last = await Panel.open(workbench, { width: 520 });
    await last.say("No, always name new files in snake_case.");
    await row("1 lesson to review").click();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowDown");
    await focused("snake_case").waitFor();
    await page.keyboard.press("Space");
    await row(/lessons? to review/).waitFor({ state: "detached" });
    assert.match(daiku("list"), /Always name new files in snake_case/);
    await header("Chat").click();

    // Written by the person, found by its words, in three themes and in Japanese.
    await workbench.command("Daiku: Add Lesson");
    for (const [title, answer] of [
      ["New lesson", "金額は小数ではなく整数のセントで扱う。"],
      ["Where does the lesson apply?", "For this repository"],
      ["Lesson section", "Common mistakes"],
    ]) {
      await page.locator(".quick-input-title", { hasText: title }).waitFor();
      await workbench.answer(answer);
    }
    await focused("金額は").waitFor();
    daiku("disable", daiku("add", "--section", "environment", "Python is 3.11 here.").trim());
    await workbench.command("Daiku: Search Lessons");
    await workbench.answer("金額");
    await pane.getByText("Lessons similar to “金額”").waitFor();
    // Sections go when the result is drawn; what is in it then takes the focus, from whatever would be opened before.
    await row("Build and test commands").waitFor({ state: "detached" });
    await focused("金額は").waitFor();
    await workbench.shot("playbook-9-found");
    await pane.getByRole("button", { name: "Show All Lessons" }).click();
    await row(/Python is 3.11 here.*disabled/).waitFor();
    await workbench.command("Preferences: Toggle between Light/Dark Themes");
    await page.locator(".monaco-workbench.vs-dark").waitFor();
    daiku("add", "--section", "review_feedback", "--propose", SHORT);
    await row("1 lesson to review").waitFor();
    await workbench.shot("playbook-10-dark");
    await workbench.command("Preferences: Color Theme");
    await workbench.answer("Dark High Contrast");
    await page.locator(".monaco-workbench.hc-black").waitFor();
    await workbench.shot("playbook-11-contrast");
    await page.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: "ja" }));
    await workbench.reload();
    await row("1件の教訓が確認待ちです").waitFor({ timeout: 60_000 });
    await row(/Python is 3.11 here.*無効/).waitFor();
    await row(SHORT).click({ button: "right" });
    await page.locator(".monaco-menu .action-label", { hasText: "却下" }).waitFor();
    await workbench.shot("playbook-12-japanese");
    await page.keyboard.press("Escape");
    await row(SHORT).hover();
    await row(SHORT).getByRole("button", { name: "承認" }).click();
    await row("確認待ち").waitFor({ state: "detached" });
    await row("レビューでの指摘").waitFor();
  });
});

// Work items in the real editor, worked by a real `daiku worker`: watched, paused by key, resumed, opened, taken over.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { at } from "../../.dev/places.mjs";
import { inEditor } from "./lab/lab.mjs";
import { Workbench } from "./lab/workbench.mjs";
import { Panel } from "./panel.mjs";

const call = (tool, args) => ({ tool, args });
const write = (name) => call("files/write", { path: name, content: `${name}\n` });
const STEPS = [
  { name: "Count the members", description: "Who is one.", acceptance: ["test -f members.txt"] },
  { name: "Take ten percent off", description: "Of all prices.", acceptance: ["test -f prices.txt"] },
];
const SCRIPT = [
  {
    text: "So.",
    when: "no request will do",
    // With a key that is not valid, it would stay queued until there is another one.
    error: { kind: "bad_request", message: "The request is not valid.", hint: "Change it." },
  },
  { text: "First a plan.", calls: [call("plan/propose", { goal: "A discount", name: "Discount", steps: STEPS })] },
  { text: "It is a good one.", calls: [call("plan/approve", {})] },
  { text: "I begin.", calls: [call("plan/update_step", { step_id: "1", status: "in_progress" })] },
  ...[1, 2, 3].map((n) => ({ text: `Part ${n}.`, delay_ms: 2500, calls: [write(`part${n}.txt`)] })),
  { text: "Members pay less now." },
  // The plan's steps are open: that is looked at twice more before it is told.
  { text: "One look more." },
  { text: "Another one." },
];
const FILES = { "prices.py": "PRICE = 1\n", "play.jsonl": SCRIPT.map((line) => JSON.stringify(line)).join("\n") };

const git = (folder, ...argv) => {
  const done = spawnSync("git", ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", ...argv], { cwd: folder });
  assert.equal(done.status, 0, String(done.stderr));
};

/** A folder of items, and a worker on them for the repository. */
async function withWorker(workspace, home, use) {
  const items = mkdtempSync(path.join(os.tmpdir(), "daiku-items-"));
  const order = (name, title, body) =>
    writeFileSync(path.join(items, `${name}.md`), `---\ntitle: ${title}\nlabels: [coding agent]\n---\n${body}\n`);
  const environment = {
    ...{ DAIKU_HOME: home, DAIKU_LLM__MODEL: "scripted/play.jsonl", DAIKU_WORK__POLL_SECONDS: "1" },
    ...{ PYTHONPATH: at("server"), LANG: "C.UTF-8" },
  };
  const python = process.env.DAIKU_DEV_PYTHON || "python3";
  const argv = ["-m", "daiku", "worker", "--source", "files", "--dir", items];
  let worker;
  const start = () => {
    worker = spawn(python, argv, { cwd: workspace, env: { ...process.env, ...environment }, stdio: "inherit" });
  };
  try {
    await use({ order, start });
  } finally {
    if (worker && worker.exitCode === null) {
      worker.kill("SIGTERM");
      await once(worker, "exit");
    }
    rmSync(items, { recursive: true, force: true });
  }
}

/** The view as a person sees it. */
const viewOf = (page) => {
  const pane = page.locator(".pane", {
    has: page.locator(".pane-header[aria-label^='Work'], .pane-header[aria-label^='作業']"),
  });
  return { pane, row: (text) => pane.locator(".monaco-list-row", { hasText: text }).first() };
};

/** Where the browser held back a window that came long after the click, the editor asks, and a person says yes. */
function allowWindow(page) {
  const retry = page.locator(".monaco-dialog-box").getByRole("button", { name: "Retry" });
  void retry.click({ timeout: 30_000 }).catch(() => undefined); // mostly nothing is held back
}

test("work items are watched, paused by key while they are worked, resumed, opened and taken over; Japanese", {
  timeout: 400_000,
}, async () => {
  const env = { DAIKU_LLM__MODEL: "scripted/play.jsonl" };
  await inEditor({ name: "work", files: FILES, env }, async ({ workbench, page, workspace, home }) => {
    for (const argv of [
      ["init", "-qb", "main"],
      ["add", "-A"],
      ["commit", "-qm", "All"],
    ])
      git(workspace, ...argv);
    const panel = await Panel.open(workbench, { width: 520 });
    await workbench.command("Daiku: Work Items");
    const { pane, row } = viewOf(page);
    await pane.getByText("To get started, run daiku worker in a terminal.").waitFor();
    await workbench.shot("work-1-empty");
    await pane.getByRole("button", { name: "Get Started" }).click();
    await workbench.webview("h1#process-labeled-issues", 30_000);
    await workbench.shot("work-1-guide");

    await withWorker(workspace, home, async ({ order, start }) => {
      order("discount", "Add a member discount", "Ten percent.");
      order("wrong", "What goes wrong", "For this no request will do.");
      start();
      await row(/Add a member discount.*0\/2 Count the members/).waitFor({ timeout: 60_000 });
      await row("In progress").waitFor();
      await workbench.shot("work-2-at-work");

      // By keyboard: to the item, it is paused, and its chat opened.
      await row("In progress").click();
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Space");
      await row(/Add a member discount.*pausing at the next step/).waitFor();
      await page.keyboard.press("Enter");
      await workbench.shot("work-3-pausing");
      await row("Paused").waitFor({ timeout: 30_000 });
      await panel.frame.locator(".item-text", { hasText: "I begin." }).waitFor();
      await row(/What goes wrong/).waitFor({ timeout: 60_000 });
      await row("Failed").waitFor({ timeout: 60_000 });
      await workbench.shot("work-4-paused");

      // Its files, in a window of their own: with its chat, and its branch.
      const opened = page.context().waitForEvent("page", { timeout: 30_000 });
      await row("Add a member discount").click({ button: "right" });
      await workbench.shot("work-5-menu");
      const takeOver = page.locator(".monaco-menu .action-label", { hasText: "Take Over" });
      await takeOver.hover();
      await takeOver.click();
      await takeOver.waitFor({ state: "detached" });
      allowWindow(page);
      const second = new Workbench(await opened);
      await second.page.waitForSelector(".monaco-workbench .part.statusbar", { timeout: 90_000 });
      const there = new Panel(second, await second.webview("textarea.composer-text", 60_000));
      await there.frame.locator(".item-text", { hasText: "I begin." }).waitFor({ timeout: 30_000 });
      await second.statusItem("daiku/discount").waitFor();
      await second.shot("work-6-taken-over");
      await second.page.close();

      await row("Add a member discount").hover();
      await row("Add a member discount").getByRole("button", { name: "Resume" }).click();
      await row("In progress").waitFor({ timeout: 30_000 });
      await row("Done").waitFor({ timeout: 60_000 });
      await panel.frame.locator(".item-text", { hasText: "Members pay less now." }).waitFor();
      await workbench.shot("work-7-done");

      await workbench.command("Preferences: Toggle between Light/Dark Themes");
      await page.locator(".monaco-workbench.vs-dark").waitFor();
      await workbench.shot("work-8-dark");
      await page.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: "ja" }));
      await workbench.reload();
      await row("完了").waitFor({ timeout: 60_000 });
      await row("完了").click();
      await row("Add a member discount").click({ button: "right" });
      await page.locator(".monaco-menu .action-label", { hasText: "引き継ぐ" }).waitFor();
      await workbench.shot("work-9-japanese");
    });
  });
});

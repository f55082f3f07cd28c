// Plan, approve, work, review hunk by hunk, undo: the whole way in the real editor, by mouse and by keyboard alone.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { inEditor, until } from "./lab/lab.mjs";
import { startModel } from "./lab/model.mjs";
import { Panel } from "./panel.mjs";

const PRICE = `"""Prices."""


def total(basket: dict[str, int]) -> int:
    """What a basket costs."""
    return sum(basket.values())


def cheapest(basket: dict[str, int]) -> str:
    return min(basket, key=basket.get)


def dearest(basket: dict[str, int]) -> str:
    return max(basket, key=basket.get)
`;
const FILES = {
  "README.md": "# A small shop\n\nWhat a basket costs.\n",
  "shop/price.py": PRICE,
  // It writes: nobody is asked about a check that only reads.
  "check.py":
    "from shop.tax import tax\n\nassert tax(30) == 3\nprint('taxes are right', file=open('checked.log', 'w'))\n",
};
const TAX = '"""Tax."""\n\n\ndef tax(amount: int) -> int:\n    """A tenth."""\n    return amount // 10\n';
const EDITS = [
  { search: '"""Prices."""\n', replace: '"""Prices, with tax."""\n\nfrom shop.tax import tax\n' },
  {
    search: "    return sum(basket.values())\n",
    replace: "    net = sum(basket.values())\n    return net + tax(net)\n",
  },
  {
    search: "    return max(basket, key=basket.get)\n",
    replace: "    return sorted(basket, key=basket.get)[-1]\n",
  },
];
const STEPS = [
  {
    name: "Write the tax",
    description: "A tenth of the amount.",
    acceptance: ["python3 check.py"],
  },
  {
    name: "Add it to the prices",
    description: "What a basket costs is with tax.",
    depends_on: ["1"],
    acceptance: ["grep -q net shop/price.py"],
  },
];

const textIn = ({ content }) => (typeof content === "string" ? content : JSON.stringify(content));
const call = (name, args) => ({ name, args });

/** Plays every member of the team: who is asked stands in the instructions, what for in the request. */
function play(body) {
  const [system] = body.messages;
  const role = (words) => textIn(system).includes(words);
  const last = body.messages.at(-1);
  const again = last.role === "tool";
  const asked = textIn(body.messages.findLast((message) => message.role === "user"));
  if (role("now you research")) return { text: '{"queries": [], "ask_user": ""}' };
  if (role("now you run commands")) return { text: '{"commands": []}' };
  if (role("now you report")) return { text: report(asked) };
  if (role("now you write code")) {
    if (again) return { text: "The step is written." };
    if (asked.includes("later one:\nStep 1:"))
      return { text: "First the tax itself.", calls: [call("files__write", { path: "shop/tax.py", content: TAX })] };
    return { text: "Now the prices.", calls: [call("files__edit", { path: "shop/price.py", edits: EDITS })] };
  }
  if (again) return { text: "This is how I would go about it." };
  return {
    text: "I look at the shop and make a plan.",
    calls: [call("plan__propose", { goal: "Prices with tax", name: "Prices with tax", steps: STEPS })],
  };
}

/** Claims with the references that the reporter is given, and one without. */
function report(asked) {
  const refs = [...asked.matchAll(/^- \[([^\]]+)\] (.*)$/gm)].map(([, ref, text]) => ({ ref, text }));
  const of = (words) => refs.filter(({ text }) => text.includes(words)).map(({ ref }) => ref);
  const claims = [
    { text: "The tax is a tenth, and the check passes.", refs: of("check.py").slice(-1) },
    { text: "Prices are with tax.", refs: of("price.py").slice(-1) },
    { text: "Nobody needs to change their calls.", refs: [] },
  ];
  return JSON.stringify({ text: "The shop's prices are **with tax** now.", claims });
}

/** The item in the status bar that counts what waits. */
const waiting = (page, text) => page.locator('[id="daiku.daiku.daiku.review"]', { hasText: text });

const AFTER = { "daiku.review": "after" };
const turns = () => Array.from({ length: 60 }, () => play);

async function journey(name, settings, way, options = {}) {
  const model = await startModel(turns(), { gap: 2 });
  try {
    const all = { ...AFTER, ...settings };
    await inEditor({ name, files: FILES, env: model.env, settings: all, ...options }, async (parts) => {
      const file = (path_) => path.join(parts.workspace, path_);
      const read = (path_) => readFileSync(file(path_), "utf8");
      await way({ ...parts, read, file, model });
    });
  } finally {
    await model.stop();
  }
}

/** The rows of one of the sections beside the chat. */
const rows = (page, title) => page.locator(`.pane:has(.pane-header[aria-label^="${title}"]) .monaco-list-row`);

test("plan, approve, work, review and undo with the mouse", { timeout: 300_000 }, async () => {
  await journey("review-mouse", {}, async ({ workbench, page, read, file }) => {
    const panel = await Panel.open(workbench);
    await panel.frame.getByRole("button", { name: /^Mode:/ }).click();
    await panel.frame.getByRole("menuitemradio", { name: /^Plan/ }).click();
    await panel.say("Let the shop's prices be with tax.");
    const card = panel.frame.locator(".card.plan");
    await card.getByRole("button", { name: "Approve and Start" }).waitFor({ timeout: 30_000 });
    await panel.ended();
    assert.equal(existsSync(file("shop/tax.py")), false, "a plan writes nothing");
    await workbench.shot("review-mouse-1-plan");

    await card.getByRole("button", { name: "Edit Plan" }).click();
    await card.getByRole("textbox", { name: "Step 2", exact: true }).fill("Add the tax to all prices");
    await workbench.shot("review-mouse-2-edit-plan");
    await card.getByRole("button", { name: "Save" }).click();
    await card.getByText("Add the tax to all prices").waitFor();

    await card.getByRole("button", { name: "Approve and Start" }).click();
    await panel.approval.filter({ hasText: "python3 check.py" }).waitFor({ timeout: 60_000 });
    await workbench.shot("review-mouse-3-working");
    await panel.decide("python3 check.py", "Always Allow");
    await panel.frame.locator(".card.report").waitFor({ timeout: 60_000 });
    await panel.ended(2);
    await workbench.shot("review-mouse-4-report");
    assert.match(read("shop/price.py"), /net \+ tax\(net\)/);

    await waiting(page, "4 changes in 2 files").click();
    await rows(page, "Changes").filter({ hasText: "price.py" }).waitFor();
    await workbench.shot("review-mouse-5-changes");
    await rows(page, "Changes").filter({ hasText: "net = sum" }).click();
    await page.locator(".tab", { hasText: "price.py (Daiku changes)" }).waitFor();
    await page.locator(".monaco-diff-editor .view-line", { hasText: "net + tax" }).first().waitFor();
    await workbench.shot("review-mouse-6-diff");
    await page.locator(".editor-actions [aria-label^='Accept Change']").first().click();
    await waiting(page, "3 changes in 2 files").waitFor();
    const third = rows(page, "Changes").filter({ hasText: "sorted" });
    await third.hover();
    await third.locator("[aria-label^='Reject Change']").click();
    await until("the third change to be taken back", () => read("shop/price.py").includes("return max("));
    assert.match(read("shop/price.py"), /net \+ tax\(net\)/);
    await workbench.shot("review-mouse-7-decided");

    await panel.frame.getByRole("button", { name: "Undo All" }).last().click();
    await page.locator(".monaco-dialog-box").getByRole("button", { name: "Undo" }).click();
    await until("the files as they were", () => !existsSync(file("shop/tax.py")) && read("shop/price.py") === PRICE);
    await panel.frame.locator(".card.restored", { hasText: "python3 check.py" }).waitFor();
    await workbench.shot("review-mouse-8-undone");
  });
});

/** Runs a command as a person without a mouse does. */
async function byKeyboard(page, title) {
  const input = page.locator(".quick-input-widget:visible input.input");
  const row = page.locator(".quick-input-list .monaco-list-row.focused", { hasText: title });
  await until(`the palette to have "${title}"`, async () => {
    await page.keyboard.press("F1");
    try {
      await input.waitFor({ state: "visible", timeout: 1500 });
      await page.keyboard.type(title);
      await row.waitFor({ timeout: 2000 });
      return true;
    } catch {
      await page.keyboard.press("Escape");
      return false;
    }
  });
  await page.keyboard.press("Enter");
}

/** Answers the input that asks with `prompt`. */
async function write(page, prompt, text) {
  await page.locator(".quick-input-widget:visible", { hasText: prompt }).waitFor();
  await page.locator(".quick-input-widget:visible input.input:focus").waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
}

/** Allows by key whatever is asked, until `done`. */
async function allowUntil(page, frame, done) {
  await until(
    "the work to be done",
    async () => {
      if (await done()) return true;
      if (await frame.locator(".approval.card").count()) await page.keyboard.press("Control+F9");
      await page.waitForTimeout(300);
      return false;
    },
    90_000,
  );
}

test("plan, approve, work, review and undo by keyboard alone", { timeout: 300_000 }, async () => {
  const settings = { "workbench.colorTheme": "Default High Contrast" };
  await journey("review-keys", settings, async ({ workbench, page, read, file }) => {
    await byKeyboard(page, "Daiku: Plan…");
    await write(page, "What should the plan accomplish?", "Let the shop's prices be with tax.");
    const frame = await workbench.webview("textarea.composer-text");
    await frame.locator(".item-end").waitFor({ timeout: 60_000 });

    // A step's words are changed in the tree.
    await byKeyboard(page, "Daiku: Focus on Plan View");
    const tree = rows(page, "Plan");
    await tree.filter({ hasText: "Add it to the prices" }).waitFor();
    await until("the second step to be selected", async () => {
      await page.keyboard.press("ArrowDown");
      return tree.filter({ hasText: "2. Add it" }).and(page.locator(".focused")).count();
    });
    await workbench.shot("review-keys-1-plan");
    await page.keyboard.press("F2");
    await write(page, "Describe the step", "Add the tax to all prices");
    await write(page, "Details (optional)", "What a basket costs is with tax.");
    await tree.filter({ hasText: "2. Add the tax to all prices" }).waitFor();

    await page.keyboard.press("Control+Alt+Enter");
    await frame.locator(".approval.card").waitFor({ timeout: 60_000 });
    await workbench.shot("review-keys-2-asked");
    await allowUntil(page, frame, async () => (await frame.locator(".item-end").count()) === 2);
    await workbench.shot("review-keys-3-report");

    await waiting(page, "4 changes in 2 files").waitFor();
    await page.keyboard.press("Control+F8");
    await page.locator(".tab.active", { hasText: /tax\.py|price\.py/ }).waitFor();
    await workbench.statusItem(/^Ln 1,/).waitFor();
    await workbench.shot("review-keys-4-first-change");
    await page.keyboard.press("Control+F9");
    await waiting(page, "3 changes in 2 files").waitFor();
    await page.locator(".tab.active", { hasText: "price.py" }).waitFor();
    await workbench.statusItem(/^Ln 8,/).waitFor();
    await workbench.shot("review-keys-5-next-change");
    await page.keyboard.press("Control+Shift+F9");
    await until("a change to be taken back", () => !read("shop/price.py").includes("net + tax(net)"));
    await workbench.statusItem(/^Ln 16,/).waitFor();
    await byKeyboard(page, "Daiku: Open Diff of Change");
    await page.locator(".monaco-diff-editor .view-line", { hasText: "sorted" }).first().waitFor();
    await workbench.shot("review-keys-6-diff");
    await page.keyboard.press("Alt+Insert");
    await waiting(page, "1 change in 1 file").waitFor();
    await page.keyboard.press("Control+Alt+Shift+Enter");
    await until("nothing to wait", async () => (await waiting(page, "change").count()) === 0);

    await page.keyboard.press("Control+F7");
    await page
      .locator(".monaco-dialog-box", { hasText: "Undo also reverts changes that you accepted in these files" })
      .waitFor();
    await workbench.shot("review-keys-7-undo-asks");
    await page.keyboard.press("Enter");
    await until("the files as they were", () => !existsSync(file("shop/tax.py")) && read("shop/price.py") === PRICE);
    await workbench.notice("The effects of these commands were not undone").waitFor();
    await workbench.shot("review-keys-7-undone");
    await page.keyboard.press("Control+Shift+F7");
    await until("the files to be back", () => existsSync(file("shop/tax.py")));
  });
});

test("before an edit is made, its changes are chosen one by one, in Japanese, in the dark", {
  timeout: 300_000,
}, async () => {
  const settings = { "daiku.review": "before", "workbench.colorTheme": "Default Dark Modern" };
  const edit = { text: "値段を変えます。", calls: [call("files__edit", { path: "shop/price.py", edits: EDITS })] };
  const model = await startModel([edit, { text: "変えました。" }], { gap: 2 });
  try {
    await inEditor({ name: "review-before", files: FILES, env: model.env, settings }, async (parts) => {
      const { workbench, page, workspace } = parts;
      // As with a language pack: the editor says that it is Japanese.
      await page.addInitScript(() => Object.assign(globalThis, { _VSCODE_NLS_LANGUAGE: "ja" }));
      await workbench.reload();
      const frame = await openChat(workbench);
      await frame.locator("textarea.composer-text").pressSequentially("値段に税を加えて");
      await page.keyboard.press("Enter");
      const card = frame.locator(".approval.card");
      await card.waitFor({ timeout: 30_000 });
      assert.equal(await card.locator("input[type=checkbox]").count(), 2);
      // The card is deaf for its first half second, to keys that were meant for something else.
      await page.waitForTimeout(700);
      await workbench.shot("review-before-1-asked");
      await card.locator("input[type=checkbox]").nth(1).focus();
      await page.keyboard.press("Space");
      await card.getByRole("button", { name: "2件中1件を許可" }).waitFor();
      await workbench.shot("review-before-2-chosen");
      await card.getByRole("button", { name: "2件中1件を許可" }).focus();
      await page.keyboard.press("Enter");
      await frame.locator(".item-end").waitFor({ timeout: 30_000 });
      const text = readFileSync(path.join(workspace, "shop/price.py"), "utf8");
      assert.match(text, /net \+ tax\(net\)/);
      assert.match(text, /return max\(/, "the change that was left out is not made");
      const told = model.requests.at(-1).messages.filter(({ role }) => role === "tool");
      assert.match(textIn(told.at(-1)), /left out|not|only/i);
      await byKeyboard(page, "Daiku: Focus on 変更 View");
      await page.locator(".pane-header[aria-label^='変更'][aria-expanded=true]").waitFor();
      await rows(page, "変更").filter({ hasText: "net = sum" }).waitFor();
      await workbench.shot("review-before-3-changes");
      await page.keyboard.press("Control+F8");
      await page.locator(".tab.active", { hasText: "price.py" }).waitFor();
      await workbench.statusItem(/^Ln 1,/).waitFor();
      await workbench.shot("review-before-4-in-place");
      await page.keyboard.press("Control+F6");
      await page.locator(".quick-input-widget:visible", { hasText: "Daiku で編集: price.py:1" }).waitFor();
      await page.keyboard.type("説明を日本語に");
      await workbench.shot("review-before-5-inline-chat");
      await page.keyboard.press("Escape");
    });
  } finally {
    await model.stop();
  }
});

/** By key, as soon as the editor knows the key. */
async function openChat(workbench) {
  return until("the chat", async () => {
    await workbench.page.keyboard.press("Control+F1");
    return workbench.webview("textarea.composer-text", 2000).catch(() => undefined);
  });
}

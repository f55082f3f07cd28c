import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import * as vscode from "vscode";
import type { App } from "../../../extension/src/app";
import type { PlanNode } from "../../../extension/src/trees/plan";
import { daiku, inWorkspace, play, until } from "./lab";

const STEPS = [
  { name: "First", acceptance: ["test -f first.txt"] },
  { name: "Second", depends_on: ["1"] },
  { name: "Third", depends_on: ["2"] },
];
const run = (command: string, ...args: unknown[]) => vscode.commands.executeCommand(command, ...args);
let app: App;

const steps = () => app.plans.plan?.steps ?? [];
const names = () => steps().map(({ name }) => name);
const node = (n: number): PlanNode => {
  const plan = app.plans.plan;
  const step = plan?.steps[n];
  assert.ok(plan && step);
  return { kind: "step", plan, step, n: n + 1 };
};

describe("a plan", () => {
  before(async () => {
    app = await daiku();
    await play(
      { calls: [{ tool: "plan/propose", args: { goal: "Three files", name: "Files", steps: STEPS } }] },
      { text: "That is the plan." },
    );
  });
  beforeEach(async () => {
    if (app.chat.working) await app.chat.stop();
    app.chat.newChat();
    await app.chat.send("Plan it", [], { mode: "plan" });
    await until("the plan", () => steps().length === 3);
  });

  it("is in its tree with what it waits for, and nothing was changed for it", () => {
    assert.match(app.plans.view.description ?? "", /^0\/3 · waiting for your approval$/);
    assert.equal(app.plans.view.message, "Files");
    assert.equal(existsSync(inWorkspace("first.txt")), false);
  });

  it("has its steps moved, removed and checked otherwise, and keeps that over a restart", async () => {
    await run("daiku.plan.moveUp", node(2));
    assert.deepEqual(names(), ["First", "Third", "Second"]);
    const [first, third] = steps();
    await run("daiku.plan.remove", { kind: "step", plan: app.plans.plan, step: steps()[2], n: 3 });
    assert.deepEqual(names(), ["First", "Third"]);
    assert.deepEqual(steps()[1]?.dependsOn, [first?.stepId], "what waited for the second step waits for the first");
    await run("daiku.plan.remove", { kind: "check", step: first, check: "test -f first.txt" });
    assert.deepEqual(steps()[0]?.acceptance, []);
    await app.server.restart("a test");
    await app.chat.reload();
    assert.deepEqual(names(), ["First", "Third"]);
    assert.equal(steps()[1]?.stepId, third?.stepId);
  });

  it("goes out as a Markdown checklist and comes in again", async () => {
    await run("daiku.plan.export");
    const document = vscode.window.activeTextEditor?.document;
    assert.equal(document?.languageId, "markdown");
    assert.match(document?.getText() ?? "", /- \[ \] .*First/);
    app.chat.newChat();
    await until("no plan", () => app.plans.plan === undefined);
    await run("daiku.plan.import");
    await until("the plan that was read", () => names().length === 3);
    assert.deepEqual(
      names().map((name) => name.replace(/^Step \d+: /, "")),
      ["First", "Second", "Third"],
    );
    await run("workbench.action.revertAndCloseActiveEditor");
  });
});

describe("chats in their tree", () => {
  it("are searched, forked from a place and shown as a trace", async () => {
    app = await daiku();
    app.chat.newChat();
    await play({ text: "An answer about walruses." });
    await app.chat.send("Tell me about walruses", []);
    const former = app.chat.current;
    await app.sessions.search("walruses");
    assert.ok(app.sessions.sessions.length >= 1);
    assert.match(app.sessions.view.message ?? "", /walruses/);
    await app.sessions.search("");
    const said = app.chat.chunks.findLast(({ type }) => type === "message");
    assert.ok(former && said);
    await app.chat.fork(former, said.seq);
    assert.notEqual(app.chat.current, former);
    assert.ok(app.chat.chunks.some((chunk) => chunk.type === "message" && chunk.data.text.includes("walruses")));
    await run(
      "daiku.showTrace",
      app.sessions.sessions.find(({ sessionId }) => sessionId === former),
    );
    const label = () => vscode.window.tabGroups.activeTabGroup.activeTab?.label ?? "";
    await until("the trace in a tab", () => label().startsWith("Trace: "));
    await run("workbench.action.revertAndCloseActiveEditor");
  });
});

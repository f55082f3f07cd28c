// @vitest-environment jsdom
// Plans, nested runs and reports in the panel.

import { describe, expect, it } from "vitest";
import type { Plan } from "../../src/contract.gen";
import { session as chunksOf, PLAN } from "../lab/chunks";
import { button, click, drawPanel, find, pass, posted, press, root, show } from "../lab/panel";

drawPanel();

const STEP = PLAN.steps[0] as Plan["steps"][number];
const TWO: Plan = {
  ...PLAN,
  steps: [
    { ...STEP, acceptance: ["npm test"] },
    { ...STEP, stepId: "step_00000002", name: "Mend it", dependsOn: [STEP.stepId] },
  ],
};
const texts = (selector: string) => [...root.querySelectorAll(selector)].map((one) => one.textContent.trim());
const input = (element: HTMLInputElement, value: string) => {
  element.value = value;
  element.dispatchEvent(new Event("input", { bubbles: true }));
};

describe("the todo list in the panel", () => {
  const item = (title: string, status: "pending" | "in_progress" | "completed") => ({ title, status });
  const say = chunksOf();
  const first = [
    say("run_started", {}),
    say("todo", { items: [item("Read", "in_progress"), item("Mend", "pending")] }),
  ];

  it("is one list that changes in place, said to a screen reader with its states", async () => {
    await show(first);
    expect(texts(".todo li")).toEqual(["Read", "Mend"]);
    expect(find(".todo").getAttribute("aria-label")).toBe("To-do list");
    await show([...first, say("todo", { items: [item("Read", "completed"), item("Mend", "in_progress")] })]);
    expect(root.querySelectorAll(".todo")).toHaveLength(1);
    const said = [...root.querySelectorAll(".todo .status")].map((one) => one.getAttribute("aria-label"));
    expect(said).toEqual(["done", "in progress"]);
    expect(find(".todo li[aria-current]").textContent).toBe("Mend");
    expect(find(".todo .dim").textContent).toBe("1/2");
  });

  it("folds to one line that says what is under way", async () => {
    await show(first);
    await click(find(".todo .plan-head"));
    expect(find(".todo .plan-head").getAttribute("aria-expanded")).toBe("false");
    expect(find(".todo strong").textContent).toBe("Read");
    expect(root.querySelector(".todo li")).toBeNull();
  });

  it("is gone where the list is empty", async () => {
    await show([say("run_started", {}), say("todo", { items: [] })]);
    expect(root.querySelector(".todo")).toBeNull();
  });
});

describe("the lessons that a run was told", () => {
  const say = chunksOf();
  const lessons = [
    { id: "com-00001", version: 1, text: "Keep prices in cents." },
    { id: "com-00002", version: 1, text: "Run make." },
  ];

  it("are one line, which opens to them, and each leads to the playbook", async () => {
    await show([say("run_started", { lessons }), say("run_finished", { usedBullets: ["com-00001"] })]);
    const head = find(".lessons .thought-head");
    expect(head.textContent).toBe("2 lessons from the playbook · used 1 lesson");
    expect(head.getAttribute("aria-expanded")).toBe("false");
    await click(head);
    expect(texts(".lessons li")).toEqual(["com-00001 Keep prices in cents.", "com-00002 Run make."]);
    await click(find(".lessons li:last-child button"));
    expect(posted.at(-1)).toEqual({ type: "openLesson", id: "com-00002" });
  });
});

describe("a plan in the panel", () => {
  const shown = () => {
    const say = chunksOf();
    return show([say("run_started", {}), say("plan", { plan: TWO }), say("run_finished", {})], false);
  };

  it("is approved and started with one button", async () => {
    await shown();
    expect(find(".plan .badge").textContent).toBe("waiting for your approval");
    await click(button("Approve and Start"));
    expect(posted).toContainEqual({ type: "planStart", planId: TWO.planId });
  });

  it("is changed as text: names, checks and order are saved together", async () => {
    await shown();
    await click(button("Edit Plan"));
    const field = root.querySelector<HTMLInputElement>('input[aria-label="Step 2"]');
    if (!field) throw new Error("no field for step 2");
    input(field, "Mend all of it");
    await pass(10);
    await press(field, "ArrowUp", { altKey: true });
    await click(button("Save"));
    const saved = posted.find((message) => message.type === "planUpdate");
    expect(saved?.type === "planUpdate" && saved.steps.map(({ name }) => name)).toEqual(["Mend all of it", "Find it"]);
    expect(saved?.type === "planUpdate" && saved.steps[1]?.acceptance).toEqual(["npm test"]);
    expect(root.querySelector(".plan-editor")).toBeNull();
  });

  it("is left as it was with Escape", async () => {
    await shown();
    await click(button("Edit Plan"));
    await press(find("input"), "Escape");
    expect(root.querySelector(".plan-editor")).toBeNull();
    expect(posted.some(({ type }) => type === "planUpdate")).toBe(false);
  });

  it("tells what proves a check, and that later changes have made it doubtful", async () => {
    const say = chunksOf();
    const ran = [
      say("run_started", {}),
      say("plan", { plan: TWO }),
      say("tool_call", { id: "t1", tool: "shell/run", args: { command: "npm test" } }),
      say("tool_response", { id: "t1", tool: "shell/run", data: { exitCode: 1 } }),
    ];
    await show(ran);
    expect(find(".check").className).toContain("failed");
    expect(find(".check .link").textContent).toBe("exit code 1");
    await show([...ran, say("edit", { callId: "", checkpointId: "c" })]);
    expect(find(".check").textContent).toContain("files have changed since");
  });
});

describe("the team's work in the panel", () => {
  it("is folded under its step when it is done; what asks is seen all the same", async () => {
    const say = chunksOf();
    const brief = { request: "", plan: TWO, stepId: "step_00000002", proofs: [], code: "" };
    const inner = { run: "r2", parent: "r1", agent: "coder" };
    const start = [
      say("run_started", {}),
      say("handoff_start", { to: "coder", run: "r2", request: "write" }),
      say("run_started", { brief, told: "Write roman.py" } as never, inner),
      say("message", { text: "I write.", agent: "coder" }, inner),
    ];
    await show(start);
    expect(find(".handoff").textContent).toContain("Step 2");
    expect(find(".handoff-request").textContent).toContain("Write roman.py");
    expect(texts(".item-text")).toEqual(["I write."]);
    const end = [...start, say("handoff_end", { to: "coder", run: "r2", result: "written" })];
    await show(end);
    expect(texts(".item-text")).toEqual([]);
    await click(find(".handoff button"));
    expect(texts(".item-text")).toEqual(["I write."]);
    await click(find(".handoff button"));
    const asks = [...end, say("approval_asked", {}, inner)];
    await show(asks);
    expect(texts(".item-text")).toEqual([]);
    expect(root.querySelector(".approval.card")).not.toBeNull();
  });

  it("ends in a report whose claims lead to what proves them", async () => {
    const say = chunksOf();
    const diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-1\n+2\n";
    const proof = { kind: "diff" as const, subject: "a.py", ref: "cp1", ok: true, value: "+1 -1" };
    const claims = [
      { text: "It is changed.", proofs: [proof] },
      { text: "It is fast.", proofs: [] },
      { text: "It is tested.", proofs: [{ ...proof, subject: "b.py", remarks: ["passed_before" as const] }] },
    ];
    const handover = { kind: "report" as const, report: { text: "Done.", claims } };
    await show([
      say("run_started", {}),
      say("edit", { callId: "", diff }),
      say("handoff_start", { to: "reporter", run: "r3", request: "" }),
      say("handoff_end", { to: "reporter", run: "r3", result: "", handover } as never),
    ]);
    expect(texts(".claims li.bare")).toEqual([
      "It is fast.not verified",
      "It is tested.b.py+1 −1, also passed before the changes",
    ]);
    await click(find(".proof"));
    expect(posted).toContainEqual({ type: "openDiff", path: "a.py", diff });
  });

  it("is undone all together from its end", async () => {
    const say = chunksOf();
    const made = [
      say("run_started", {}),
      say("edit", { callId: "", checkpointId: "one" }),
      say("edit", { callId: "", checkpointId: "two" }, { run: "r2", parent: "r1" }),
      say("run_finished", {}),
    ];
    await show(made, false);
    await click(button("Undo All"));
    expect(posted).toContainEqual({ type: "undo", checkpointId: "one" });
    const stays = [{ command: "rm -rf build", exitCode: 0, time: "2026-11-01T10:00:00.000Z" }];
    await show([...made, say("restored", { checkpointId: "one", cannotUndo: stays })], false);
    expect(root.querySelector(".changed")).toBeNull();
    expect(find(".restored").textContent).toContain("rm -rf build");
  });
});

describe("an edit that is asked about", () => {
  const preview = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-1\n+2\n@@ -9 +9 @@\n-9\n+8\n";
  const asked = async () => {
    const say = chunksOf();
    await show([
      say("run_started", {}),
      say("approval_asked", { kind: "edit", tool: "files/edit", preview, hunks: 2 }),
    ]);
    await pass(600);
  };

  it("is made only in the parts that were left in", async () => {
    await asked();
    const [first] = root.querySelectorAll<HTMLInputElement>(".choice input");
    if (!first) throw new Error("nothing to choose");
    await click(first);
    await click(button("Allow 1 of 2"));
    expect(posted).toContainEqual({
      ...{ type: "approve", run: "r1", approvalId: "a1", decision: "allow_once" },
      hunks: [1],
    });
  });

  it("is made whole where nothing was left out, and not at all where all was", async () => {
    await asked();
    for (const box of root.querySelectorAll<HTMLInputElement>(".choice input")) await click(box);
    expect(button("Allow 0 of 2").disabled).toBe(true);
    for (const box of root.querySelectorAll<HTMLInputElement>(".choice input")) await click(box);
    await click(button("Allow Once"));
    expect(posted).toContainEqual({ type: "approve", run: "r1", approvalId: "a1", decision: "allow_once" });
  });
});

// @vitest-environment jsdom
// How calls, runs and answers end, as the panel shows it.

import { act } from "preact/test-utils";
import { describe, expect, it } from "vitest";
import type { Chunk } from "../../src/contract.gen";
import { session as chunksOf } from "../lab/chunks";
import { click, drawPanel, find, pass, posted, press, root, SESSION, show, tell } from "../lab/panel";

drawPanel();

type Outcome = Extract<Chunk, { type: "tool_response" }>["data"]["outcome"];
const OUTCOMES: [Outcome, string, string][] = [
  ["done", "done", ""],
  ["failed", "failed", "the model's words"],
  ["denied", "not allowed", "Blocked by Daiku's rules."],
  ["rejected", "rejected", "You rejected this."],
  ["unattended", "not approved", "No one was available to approve this."],
  ["interrupted", "interrupted", "Interrupted. It may have had side effects."],
  ["cancelled", "canceled", "Canceled. It may have had side effects."],
  ["not_run", "not run", "Not run."],
];

async function ended(outcome: Outcome, tool = "files/read", result = "the model's words", data?: object) {
  const say = chunksOf();
  const answer = { id: "c1", tool, ok: outcome === "done", outcome, result, ...(data ? { data } : {}) };
  await show([
    say("run_started", {}),
    say("tool_call", { id: "c1", tool, args: tool === "shell/run" ? { command: "npm test" } : { path: "a.py" } }),
    say("tool_response", answer as never),
  ]);
  return find('[data-call="c1"]');
}

describe("a call that has ended", () => {
  it.each(OUTCOMES)("as %s says so in a person's words", async (outcome, spoken, note) => {
    const call = await ended(outcome);
    expect(call.querySelector(".status")?.getAttribute("aria-label")).toBe(spoken);
    expect(call.querySelector(".tool-error")?.textContent ?? "").toBe(note);
  });

  it("looks different for each way that it can end", async () => {
    const looks = new Set<string>();
    for (const [outcome] of OUTCOMES) {
      const call = await ended(outcome);
      looks.add(call.querySelector(".status .codicon")?.className ?? "");
    }
    expect(looks.size).toBe(OUTCOMES.length);
  });

  it("keeps a failed command open, with its exit code and the last lines", async () => {
    const output = Array.from({ length: 40 }, (_, n) => `line ${n}`).join("\n");
    const call = await ended("failed", "shell/run", output, { exitCode: 3 });
    expect(call.querySelector(".badge.wrong")?.textContent).toBe("exit code 3");
    const shown = call.querySelector(".output pre")?.textContent ?? "";
    expect(shown.split("\n")).toEqual(["…", ...output.split("\n").slice(-12)]);
  });

  it("escapes hidden characters in the output of a command, while it runs and afterwards", async () => {
    const say = chunksOf();
    await show([
      say("run_started", {}),
      say("tool_call", { id: "c1", tool: "shell/run", args: { command: "cat \u202ea" } }),
      say("tool_output", { id: "c1", text: "ok \u202e👩\u200d💻\u200b" }),
    ]);
    expect(find('[data-call="c1"] .output pre').textContent).toBe("ok ‹U+202E›👩\u200d💻‹U+200B›");
    expect(find('[data-call="c1"]').textContent).not.toMatch(/[\u202e\u200b]/);
    const call = await ended("failed", "shell/run", "bad \u2066x\u{e0041}", { exitCode: 1 });
    expect(call.querySelector(".output pre")?.textContent).toBe("bad ‹U+2066›x‹U+E0041›");
  });

  it("closes a command that went well", async () => {
    const call = await ended("done", "shell/run", "all good", { exitCode: 0 });
    expect(call.querySelector(".output")).toBeNull();
    expect(call.querySelector(".badge.wrong")).toBeNull();
  });
});

describe("a file that was read", () => {
  it("is shown as what it is: code in its colours, without what was asked in the form of a program", async () => {
    const call = await ended("done", "files/read", "def price():\n    pass\n");
    await click(call.querySelector(".tool-head") as HTMLElement);
    expect(call.querySelector(".args")).toBeNull();
    expect(call.querySelector(".hljs-keyword")?.textContent).toBe("def");
    expect(call.querySelector(".output pre")?.textContent).toBe("def price():\n    pass\n");
  });

  it("cannot bring markup with it", async () => {
    const call = await ended("done", "files/read", "<img src=x onerror=alert(1)>");
    await click(call.querySelector(".tool-head") as HTMLElement);
    expect(call.querySelector("img")).toBeNull();
  });

  it("shows what was asked of any other tool", async () => {
    const call = await ended("done", "mcp/lookup", "found");
    await click(call.querySelector(".tool-head") as HTMLElement);
    expect(call.querySelector(".args")?.textContent).toContain('"path": "a.py"');
  });
});

describe("the focus", () => {
  it("is in the composer when the question that had it is answered by a key", async () => {
    const say = chunksOf();
    document.hasFocus = () => true;
    await show([say("run_started", {}), say("approval_asked", { callId: "c1" })]);
    await pass(600);
    const card = find(".approval.card");
    expect(document.activeElement).toBe(card);
    await press(card, "Enter");
    const chunks = [
      say("approval_given", { decision: "allow_once" }),
      say("tool_call", { id: "c1", tool: "shell/run", args: { command: "x" } }),
    ];
    await tell({ type: "chunks", session: SESSION.sessionId, chunks });
    expect(card.isConnected).toBe(false);
    expect(document.activeElement).toBe(find(".composer-text"));
  });
});

describe("a plan that waits for approval", () => {
  it("is not shown a second time as Markdown", async () => {
    const say = chunksOf();
    const preview = "# Repair\n\n- [ ] Step 1: find it";
    await show([
      say("run_started", {}),
      say("plan", {}),
      say("approval_asked", { kind: "plan", tool: "plan/approve", args: {}, preview, callId: "c1" }),
    ]);
    expect(root.textContent).not.toContain("- [ ]");
    expect([...root.querySelectorAll(".approval button.primary")].map((one) => one.textContent)).toEqual(["Approve"]);
  });
});

describe("silence", () => {
  it("in the middle of an answer says for what it waits, and how long", async () => {
    const say = chunksOf();
    await show([say("run_started", {}), say("delta", { text: "This ans" })]);
    expect(root.querySelector(".busy")).toBeNull();
    await pass(7000);
    expect(find(".busy").textContent).toContain("Waiting for the model");
    expect(find(".busy").textContent).toMatch(/7(\.\d)? s/);
    await tell({ type: "chunks", session: SESSION.sessionId, chunks: [say("delta", { text: "wer" })] });
    expect(root.querySelector(".busy")).toBeNull();
  });

  it("of a command says that the command is waited for", async () => {
    const say = chunksOf();
    await show([say("run_started", {}), say("tool_call", { id: "c1", tool: "shell/run", args: { command: "x" } })]);
    await pass(6000);
    expect(find(".busy").textContent).toContain("Waiting for: Run");
  });
});

describe("a long chat", () => {
  it("asks for what lies before it once the person is at its top, and shows it in place", async () => {
    const say = chunksOf();
    const older = [say("run_started", { prompt: "older" }), say("notice", { text: "from before" })];
    const newer = [say("run_started", { prompt: "newer" }, { run: "r2" })];
    const usage = { model: "", promptTokens: 0, completionTokens: 0, cachedTokens: 0 };
    const earlier = { beforeSeq: 3, count: 2, usage };
    await tell({ type: "session", session: SESSION, chunks: newer, working: false, earlier });
    await act(async () => void find(".items").dispatchEvent(new Event("scroll")));
    await act(async () => void find(".items").dispatchEvent(new Event("scroll")));
    expect(posted.filter(({ type }) => type === "earlier")).toHaveLength(1);
    await tell({ type: "earlier", session: "another", chunks: older });
    expect(root.textContent).not.toContain("from before");
    await tell({ type: "earlier", session: SESSION.sessionId, chunks: older });
    expect([...root.querySelectorAll(".item")].map((one) => one.textContent?.trim())).toHaveLength(3);
    expect(root.textContent?.indexOf("from before")).toBeLessThan(root.textContent?.indexOf("newer") ?? 0);
  });
});

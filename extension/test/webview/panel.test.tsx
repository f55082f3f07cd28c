// @vitest-environment jsdom
// The panel: streaming, notices, questions, history, focus.

import { act } from "preact/test-utils";
import { describe, expect, it } from "vitest";
import type { ToPanel } from "../../src/pure/chat/panel";
import { session as chunksOf } from "../lab/chunks";
import { button, click, drawPanel, find, HELLO, posted, root, SESSION, show, tell } from "../lab/panel";

drawPanel();

describe("a model that is asked again and again", () => {
  const tries = (...attempts: number[]) => {
    const say = chunksOf();
    return [
      say("run_started", {}),
      ...attempts.flatMap((attempt) => [
        say("delta", { text: "half" }),
        say("notice", { level: "warning", text: `Lost. Trying again (${attempt} of 4).`, attempt }),
      ]),
    ];
  };
  const notices = () => [...root.querySelectorAll(".notice")].map(({ textContent }) => textContent);

  it("is one line that counts", async () => {
    await show(tries(1, 2, 3, 4));
    expect(notices()).toEqual(["Lost. Trying again (4 of 4)."]);
  });

  it("begins a line of its own after something else has happened, and leaves other notices alone", async () => {
    const say = chunksOf();
    const other = say("notice", { level: "info", text: "Something else" }, { seq: 50 } as never);
    const again = say("notice", { level: "warning", text: "Lost.", attempt: 1 }, { seq: 51 } as never);
    await show([...tries(1, 2), other, again]);
    expect(notices()).toEqual(["Lost. Trying again (2 of 4).", "Something else", "Lost."]);
  });
});

describe("the conversation", () => {
  it("streams: the block that is done is not drawn again", async () => {
    const say = chunksOf();
    await show([say("run_started", {})]);
    await tell({ type: "chunks", session: "s1", chunks: [say("delta", { text: "One.\n\nTw" })] });
    const first = find(".markdown .block");
    await tell({
      type: "chunks",
      session: "s1",
      chunks: [say("delta", { text: "o." }), say("message", { text: "One.\n\nTwo." })],
    });
    expect(find(".markdown .block")).toBe(first);
    expect(find(".markdown").textContent?.replace(/\s+/g, " ").trim()).toBe("One. Two.");
  });

  it("ignores chunks of another session", async () => {
    const say = chunksOf("other");
    await show([chunksOf()("run_started", {})]);
    // Later than all that is shown: its number alone does not keep it out.
    const stray = say("delta", { text: "stray" }, { seq: 50 });
    await tell({ type: "chunks", session: "other", chunks: [stray] });
    expect(root.textContent).not.toContain("stray");
    await tell({ type: "chunks", session: "s1", chunks: [{ ...stray, session: "s1" }] });
    expect(root.textContent).toContain("stray");
  });

  it("shows a command's live output without its escape sequences", async () => {
    const say = chunksOf();
    await show([
      say("run_started", {}),
      say("tool_call", { tool: "shell/run", args: { command: "make" } }),
      say("tool_output", { text: "\u001b[32mok\u001b[0m\u001b]52;c;eA==\u0007" }),
    ]);
    expect(find(".output pre").textContent).toBe("ok");
  });

  it("names files with links that open, and offers the diff and the way back", async () => {
    const say = chunksOf();
    const diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-1\n+2\n";
    await show(
      [
        say("run_started", {}),
        say("tool_call", { tool: "files/edit" }),
        say("edit", { diff }),
        say("tool_response", {}),
      ],
      false,
    );
    await click(button("Open Diff"));
    await click(button("Undo This and All Later Changes"));
    expect(posted).toContainEqual({ type: "openDiff", path: "a.py", diff });
    expect(posted).toContainEqual({ type: "undo", checkpointId: "cp1" });
    await tell({ type: "chunks", session: SESSION.sessionId, chunks: [say("restored", { checkpointId: "cp1" })] });
    expect(find(".file-line").className).toContain("undone");
  });

  it("asks and answers questions", async () => {
    const say = chunksOf();
    await show([say("run_started", {}), say("input_asked", {})]);
    await click(button("b"));
    expect(posted).toContainEqual({ type: "answer", run: "r1", inputId: "i1", text: "b" });
  });

  it("offers to resume a run that was interrupted", async () => {
    await show([chunksOf()("run_started", {})], false);
    await click(button("Resume"));
    expect(posted).toContainEqual({ type: "resume", run: "r1" });
  });

  it("draws the newest of a long history, and more of it on the way up", async () => {
    const say = chunksOf();
    const many = [say("run_started", {}), ...Array.from({ length: 2000 }, (_, i) => say("notice", { text: `n${i}` }))];
    const start = performance.now();
    await show(many, false);
    expect(root.querySelectorAll(".item").length).toBe(80);
    expect(root.textContent).toContain("n1999");
    expect(performance.now() - start).toBeLessThan(2000);
    await act(async () => void find(".items").dispatchEvent(new Event("scroll")));
    expect(root.querySelectorAll(".item").length).toBe(160);
  });

  it("tells a screen reader whole sentences", async () => {
    const say = chunksOf();
    await show([say("run_started", {}), say("delta", { text: "Hal" })]);
    expect(find("[aria-live=polite]").textContent).toBe("");
    await tell({ type: "chunks", session: "s1", chunks: [say("message", { text: "Half and whole." })] });
    expect(find("[aria-live=polite]").textContent).toBe("Half and whole.");
  });
});

describe("the panel", () => {
  it.each([
    ["completed", "Daiku has finished."],
    ["failed", "Failed"],
    ["cancelled", "Stopped"],
    ["limit", "Limit reached"],
  ] as const)("tells a screen reader how a run ended: %s", async (status, words) => {
    const say = chunksOf();
    await show([say("run_started", {}), say("run_finished", { status })], false);
    expect(find(".hidden-words").textContent).toBe(words);
  });

  it("says what is wrong with the server and what to do", async () => {
    const server = { phase: "failed" as const, message: "No Python", hint: "Install uv" };
    await tell({ type: "situation", situation: { ...(HELLO as { situation: object }).situation, server } as never });
    expect(find(".banner").textContent).toContain("Install uv");
    await click(button("Try Again"));
    expect(posted).toContainEqual({ type: "command", command: "daiku.restartServer" });
  });

  it("says that a workspace is not trusted", async () => {
    await tell({
      type: "situation",
      situation: { server: { phase: "off" }, trusted: false, model: "", mode: "act", folder: true },
    });
    expect(find(".banner").textContent).toContain("not trusted");
  });

  it("says how to connect a model where there is none", async () => {
    await tell({
      type: "situation",
      situation: {
        server: { phase: "ready" },
        trusted: true,
        model: "",
        mode: "act",
        folder: true,
        models: { models: [], providers: [] },
      },
    });
    expect(find(".connect").textContent).toContain("Set API Key");
  });

  it("takes an editor that lends no model for no model", async () => {
    const models = { models: [], providers: [], selected: "editor" };
    await tell({
      type: "situation",
      situation: { server: { phase: "ready" }, trusted: true, model: "", mode: "act", folder: true, models },
    });
    expect(find(".connect").textContent).toContain("Set API Key");
    expect(find(".pick.model").textContent).toBe("No model");
  });

  it("lists former chats, opens and deletes them", async () => {
    await tell({ type: "focus", what: "history" });
    expect(posted).toContainEqual({ type: "sessions", query: "" });
    await tell({ type: "sessions", query: "", sessions: [SESSION], current: undefined });
    await click(find(".session-open"));
    await click(button("Delete"));
    expect(posted).toContainEqual({ type: "openSession", session: "s1" });
    expect(posted).toContainEqual({ type: "deleteSession", session: "s1" });
  });

  it("speaks the person's language", async () => {
    await tell({
      ...(HELLO as Extract<ToPanel, { type: "hello" }>),
      words: { "What do you want to build?": "何を作りましょうか?" },
      locale: "ja",
    });
    expect(find("h1").textContent).toBe("何を作りましょうか?");
    expect(document.documentElement.lang).toBe("ja");
  });

  it("names every button", () => {
    for (const one of root.querySelectorAll("button"))
      expect(one.getAttribute("aria-label") ?? one.textContent?.trim()).toBeTruthy();
  });
});

describe("the welcome", () => {
  const examples = () => [...root.querySelectorAll<HTMLButtonElement>(".examples button")].map((one) => one.disabled);
  const phase = (now: "installing" | "starting" | "ready" | "failed") =>
    tell({
      type: "situation",
      situation: { server: { phase: now }, trusted: true, model: "", mode: "act", folder: true },
    });

  it.each([
    ["installing", true],
    ["failed", true],
    ["starting", false],
    ["ready", false],
  ] as const)("offers its examples when they lead to something: %s", async (now, disabled) => {
    await phase(now);
    expect(examples()).toEqual([disabled, disabled, disabled]);
  });

  it("is not shown in place of a chat that is still being fetched", async () => {
    const stub = { ...SESSION, createdAt: "" };
    await tell({ type: "session", session: stub, chunks: [], working: false });
    expect(root.querySelector(".welcome")).toBeNull();
    expect(find(".coming").textContent).toBe("Loading chat…");
    await tell({ type: "session", session: undefined, chunks: [], working: false });
    find(".welcome");
  });

  it("does not say that there is no model before it is known", async () => {
    await phase("starting");
    expect(find(".pick.model").textContent).toBe("…");
    await tell({
      type: "situation",
      situation: {
        ...{ server: { phase: "ready" }, trusted: true, model: "", mode: "act", folder: true },
        models: { models: [], providers: [], selected: "" },
      },
    });
    expect(find(".pick.model").textContent).toBe("No model");
  });
});

describe("between two calls", () => {
  it("a few words are no answer: their buttons are marked as such", async () => {
    const say = chunksOf();
    const calls = [{ id: "c", tool: "files/read", args: {} }];
    const words = (text: string, more: object) => say("message", { role: "assistant", text, ...more });
    await show([say("run_started", {}), words("I look.", { calls }), words("Done.", { calls: [] })], false);
    const marks = [...root.querySelectorAll(".said-actions")].map((one) => one.classList.contains("between"));
    expect(marks).toEqual([true, false]);
  });
});

describe("the end of a run", () => {
  it.each([
    ["openai/lab", true],
    ["scripted/demo", false],
  ])("of %s counts tokens: %s", async (model, counted) => {
    const say = chunksOf();
    const usage = { model, promptTokens: 46_620, completionTokens: 7, cachedTokens: 0 };
    await tell({
      type: "situation",
      situation: { server: { phase: "ready" }, trusted: true, model, mode: "act", folder: true },
    });
    await show([say("run_started", { model }), say("usage", usage), say("run_finished", { usage })], false);
    expect(/47k|46/.test(root.querySelector(".end")?.textContent ?? "")).toBe(counted);
    expect(root.querySelector(".usage") !== null).toBe(counted);
  });
});

// @vitest-environment jsdom
import { act } from "preact/test-utils";
import { describe, expect, it } from "vitest";
import type { ToPanel } from "../src/pure/panel";
import { session as chunksOf } from "./chunks";
import {
  button,
  click,
  drawPanel,
  find,
  HELLO,
  pass,
  posted,
  press,
  root,
  SESSION,
  show,
  tell,
  type,
} from "./panelLab";

drawPanel();

describe("the composer", () => {
  const box = () => find<HTMLTextAreaElement>(".composer-text");

  it("sends with Enter, shows what was said at once, and is empty again", async () => {
    await type(box(), "Do it");
    await press(box(), "Enter");
    await pass(100);
    expect(posted).toContainEqual({ type: "send", text: "Do it", context: [] });
    expect(box().value).toBe("");
    expect(find(".said").textContent).toBe("Do it");
  });

  it("does not send with Shift+Enter, nor empty text", async () => {
    await press(box(), "Enter");
    await type(box(), "line");
    await press(box(), "Enter", { shiftKey: true });
    expect(posted.filter((message) => message.type === "send")).toEqual([]);
  });

  it("recalls with the arrows what was said, here and then in other chats, and never over what is written", async () => {
    for (const words of ["in another chat", "twice", "twice"]) {
      await type(box(), words);
      await press(box(), "Enter");
    }
    const say = chunksOf();
    await show([say("run_started", { prompt: "first" }), say("run_finished", {})], false);
    const values: string[] = [];
    for (const key of [
      "ArrowUp",
      "ArrowUp",
      "ArrowUp",
      "ArrowUp",
      "ArrowDown",
      "ArrowDown",
      "ArrowDown",
      "ArrowDown",
    ]) {
      await press(box(), key);
      values.push(box().value);
    }
    expect(values).toEqual([...["first", "twice", "in another chat", "in another chat", "twice", "first", "", ""]]);
    await type(box(), "begun");
    await press(box(), "ArrowUp");
    expect(box().value).toBe("begun");
    await type(box(), "");
    await press(box(), "ArrowUp");
    await type(box(), "first, changed");
    await press(box(), "ArrowUp");
    expect(box().value).toBe("first, changed");
    await press(box(), "Enter");
    expect(posted.at(-1)).toEqual({ type: "send", text: "first, changed", context: [] });
  });

  it("leaves Enter to an input method that composes Japanese", async () => {
    await type(box(), "だいく");
    await press(box(), "Enter", { isComposing: true });
    await press(box(), "Enter", { keyCode: 229 });
    expect(posted.filter((message) => message.type === "send")).toEqual([]);
    await press(box(), "Enter");
    expect(posted).toContainEqual({ type: "send", text: "だいく", context: [] });
  });

  it("steers and stops a run that is under way", async () => {
    await show([chunksOf()("run_started", {})]);
    await type(box(), "use tabs");
    await press(box(), "Enter");
    expect(posted).toContainEqual({ type: "steer", text: "use tabs" });
    await press(box(), "Escape");
    expect(posted).toContainEqual({ type: "stop" });
  });

  it("offers what an @ can point at, and sends it along", async () => {
    await type(box(), "see @car");
    expect(posted).toContainEqual({ type: "candidates", query: "car" });
    const attachment = { item: { kind: "file" as const, uri: "file:///w/cart.py" }, label: "cart.py", icon: "file" };
    await tell({ type: "candidates", query: "car", candidates: [attachment] });
    await press(box(), "Enter");
    await pass(100);
    expect(box().value).toBe("see ");
    expect(find(".chip").textContent).toContain("cart.py");
    await type(box(), "see this");
    await press(box(), "Enter");
    expect(posted).toContainEqual({ type: "send", text: "see this", context: [attachment.item] });
  });

  it("gets back what could not be sent", async () => {
    await tell({ type: "failed", kind: "no_provider", message: "No model", hint: "Set a key", text: "my words" });
    expect(box().value).toBe("my words");
    expect(find(".trouble").textContent).toContain("Set a key");
  });
});

describe("a request that failed", () => {
  const failed = (kind: string, over: object = {}) => {
    const say = chunksOf();
    const error = { kind, message: "It did not work", hint: "", retryable: false } as never;
    return [
      say("run_started", { prompt: "Do it" }, over),
      say("error", error),
      say("run_finished", { status: "failed" } as never),
    ];
  };

  it.each(["auth", "rate_limit", "timeout", "stream_cut", "context_overflow", "connection", "internal"])(
    "with %s can be made once more, by one button",
    async (kind) => {
      await show(failed(kind), false);
      await click(button("Try again"));
      expect(posted.at(-1)).toEqual({ type: "retry", run: "r1" });
    },
  );

  it("is offered again only where it ended the newest request, nothing is under way, and a person wrote it", async () => {
    const say = chunksOf();
    const later = [...failed("auth"), say("run_started", {}, { run: "r2", seq: 10 } as never)];
    const offers = () => root.querySelectorAll(".trouble .primary").length;
    for (const [chunks, working] of [
      [failed("auth"), true],
      [later, true],
      [[...later, say("run_finished", {}, { run: "r2", seq: 11 } as never)], false],
      [failed("auth", { agent: "team" }), false],
    ] as const) {
      await show(chunks, working);
      expect(offers()).toBe(0);
    }
  });
});

describe("what was said", () => {
  it("can be said otherwise, in a new chat", async () => {
    const say = chunksOf();
    await show([say("run_started", { prompt: "Do it" }), say("run_finished", {})], false);
    await click(button("Say this otherwise, in a new chat"));
    expect(posted.at(-1)).toEqual({ type: "rephrase", run: "r1" });
  });
});

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

describe("an approval", () => {
  const ask = async (data: object = {}) => {
    const say = chunksOf();
    await show([
      say("run_started", {}),
      say("approval_asked", { why: "not on your list", remember: "npm test here", ...data }),
    ]);
    await pass(600);
    return find(".approval.card");
  };

  it("shows the whole command, why, and what always means", async () => {
    const card = await ask({ preview: "npm test && rm -rf \u202e/" });
    expect(card.querySelector("pre")?.textContent).toBe("$ npm test && rm -rf ‹U+202E›/");
    expect(card.textContent).toContain("not on your list");
    expect(card.textContent).toContain("Always: npm test here");
  });

  it("takes the focus, and answers to Enter and Escape", async () => {
    const card = await ask();
    expect(document.activeElement).toBe(card);
    await press(card, "Escape");
    expect(posted).toContainEqual({ type: "approve", run: "r1", approvalId: "a1", decision: "reject_once" });
    await press(card, "Enter");
    expect(posted).toContainEqual({ type: "approve", run: "r1", approvalId: "a1", decision: "allow_once" });
  });

  it("does not take the focus from a person who writes", async () => {
    const box = find<HTMLTextAreaElement>(".composer-text");
    box.focus();
    await type(box, "half a sent");
    await ask();
    expect(document.activeElement).toBe(box);
  });

  it("is deaf for the first moment, to a key that was meant for something else", async () => {
    const say = chunksOf();
    await show([say("run_started", {}), say("approval_asked", {})]);
    await press(find(".approval.card"), "Enter");
    expect(posted.filter((message) => message.type === "approve")).toEqual([]);
  });

  it("offers always only where it can be remembered", async () => {
    await ask({ remember: "" });
    expect(() => button("Always allow")).toThrow();
  });

  it("is rejected with a reason", async () => {
    await ask();
    await click(button("Reject and say why…"));
    const box = find<HTMLTextAreaElement>(".feedback textarea");
    await type(box, "use pnpm");
    await press(box, "Enter");
    expect(posted).toContainEqual({
      type: "approve",
      run: "r1",
      approvalId: "a1",
      decision: "reject_once",
      feedback: "use pnpm",
    });
  });

  it("of an edit shows its diff", async () => {
    const card = await ask({ kind: "edit", preview: "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new\n" });
    expect([...card.querySelectorAll("td.text")].map((cell) => cell.textContent)).toEqual(["old", "new"]);
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
    await tell({ type: "chunks", session: "other", chunks: [say("delta", { text: "stray" })] });
    expect(root.textContent).not.toContain("stray");
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
    await click(button("Open diff"));
    await click(button("Undo this and all later changes"));
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
    ["limit", "A limit was reached"],
  ] as const)("tells a screen reader how a run ended: %s", async (status, words) => {
    const say = chunksOf();
    await show([say("run_started", {}), say("run_finished", { status })], false);
    expect(find(".hidden-words").textContent).toBe(words);
  });

  it("says what is wrong with the server and what to do", async () => {
    const server = { phase: "failed" as const, message: "No Python", hint: "Install uv" };
    await tell({ type: "situation", situation: { ...(HELLO as { situation: object }).situation, server } as never });
    expect(find(".banner").textContent).toContain("Install uv");
    await click(button("Try again"));
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
    expect(find(".connect").textContent).toContain("Set API key");
  });

  it("takes an editor that lends no model for no model", async () => {
    const models = { models: [], providers: [], selected: "editor" };
    await tell({
      type: "situation",
      situation: { server: { phase: "ready" }, trusted: true, model: "", mode: "act", folder: true, models },
    });
    expect(find(".connect").textContent).toContain("Set API key");
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
      words: { "What shall we build?": "何を作りましょうか?" },
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

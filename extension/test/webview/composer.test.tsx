// @vitest-environment jsdom
// The composer: sending, recalling, pointing with `@`, input methods, steering.

import { describe, expect, it } from "vitest";
import { session as chunksOf } from "../lab/chunks";
import { button, click, drawPanel, find, pass, posted, press, root, show, tell, type } from "../lab/panel";

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
      await click(button("Try Again"));
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
    await click(button("Edit in New Chat"));
    expect(posted.at(-1)).toEqual({ type: "rephrase", run: "r1" });
  });
});

describe("what was said meanwhile", () => {
  it("is marked until Daiku reads it", async () => {
    const say = chunksOf();
    const began = [say("run_started", {}), say("delta", { text: "I" }), say("message", { role: "user", text: "wait" })];
    await show(began);
    expect(find(".unread").textContent?.trim()).toBe("Daiku will read this before its next response");
    await show([...began, say("message", { text: "I do.", calls: [] }), say("delta", { text: "So" })]);
    expect(root.querySelector(".unread")).toBeNull();
  });
});

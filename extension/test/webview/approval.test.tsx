// @vitest-environment jsdom
// An approval in the panel: what its keys and buttons answer, and which hunks are wanted.

import { describe, expect, it } from "vitest";
import { session as chunksOf } from "../lab/chunks";
import { button, click, drawPanel, find, pass, posted, press, show, type } from "../lab/panel";

drawPanel();

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
    expect(card.textContent).toContain("Always allow: npm test here");
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
    expect(() => button("Always Allow")).toThrow();
  });

  it("is rejected with a reason", async () => {
    await ask();
    await click(button("Reject with Feedback…"));
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

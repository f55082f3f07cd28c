// The chunks of a session in order: gaps, repetitions, what a later one makes needless.

import { describe, expect, it } from "vitest";
import { pendingApprovals } from "../../src/pure/chat/pending";
import { Stream } from "../../src/pure/chat/stream";
import { EMPTY, foldAll } from "../../src/pure/view/view";
import { session } from "../lab/chunks";

describe("a stream", () => {
  it("takes chunks in order, once each", () => {
    const [say, stream] = [session(), new Stream()];
    const start = say("run_started", {});
    expect(stream.offer(start)).toBe("new");
    expect(stream.offer(start)).toBe("known");
    expect(stream.offer(say("delta", { text: "a" }))).toBe("new");
  });

  it("sees that a chunk is missing, and goes on when the tail is there", () => {
    const [say, stream] = [session(), new Stream()];
    stream.offer(say("run_started", {}));
    const lost = say("message", { text: "lost" });
    const late = say("tool_call", {});
    expect(stream.offer(late)).toBe("gap");
    expect(stream.fill([lost, late], 3)).toEqual([lost, late]);
    expect(stream.offer(late)).toBe("known");
    expect(stream.offer(say("tool_response", {}))).toBe("new");
  });

  it("takes one chunk that stands for several deltas", () => {
    const [say, stream] = [session(), new Stream()];
    stream.offer(say("run_started", {}));
    expect(stream.offer({ ...say("delta", { text: "abc" }), seq: 4, seqFrom: 2 })).toBe("new");
    expect(stream.lastSeq).toBe(4);
  });

  it("after a reload expects what follows the session's last number, ephemeral chunks included", () => {
    const [say, stream] = [session(), new Stream()];
    const start = say("run_started", {});
    say("delta", { text: "gone" });
    stream.fill([start], 2);
    expect(stream.offer(say("delta", { text: "next" }))).toBe("new");
  });

  it("forgets deltas and live output once their whole is there, and shows the same", () => {
    const [say, stream] = [session(), new Stream()];
    const all = [
      say("run_started", {}),
      say("delta", { text: "Hel" }),
      say("delta", { text: "lo" }),
      say("message", { text: "Hello" }),
      say("tool_call", {}),
      say("tool_output", { text: "1" }),
      say("tool_response", { result: "1" }),
    ];
    for (const chunk of all) stream.offer(chunk);
    expect(stream.chunks.map((chunk) => chunk.type)).toEqual(["run_started", "message", "tool_call", "tool_response"]);
    const texts = (view: typeof EMPTY) => view.items.map((item) => ("text" in item ? item.text : item.kind));
    expect(texts(foldAll(EMPTY, stream.chunks))).toEqual(texts(foldAll(EMPTY, all)));
  });
});

it("approvals are pending until they are answered or their run ends", () => {
  const say = session();
  const asked = [
    say("run_started", {}),
    say("approval_asked", { approvalId: "a1" }),
    say("approval_asked", { approvalId: "a2" }),
  ];
  expect(pendingApprovals(asked).map((one) => one.approvalId)).toEqual(["a1", "a2"]);
  const answered = [...asked, say("approval_given", { approvalId: "a1" })];
  expect(pendingApprovals(answered)).toMatchObject([{ approvalId: "a2", runId: "r1" }]);
  const ofOther = say("approval_asked", { approvalId: "a3" }, { run: "r2" });
  const afterEnd = pendingApprovals([...answered, ofOther, say("run_finished", {})]);
  expect(afterEnd.map((one) => one.approvalId)).toEqual(["a3"]);
});

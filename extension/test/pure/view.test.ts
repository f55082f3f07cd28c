// The fold of chunks into the items of the panel, type by type.

import { describe, expect, it } from "vitest";
import type { Chunk } from "../../src/contract.gen";
import type { Item, TextItem } from "../../src/pure/view/items";
import { cutMiddle } from "../../src/pure/view/sums";
import { EMPTY, foldAll, type View, waiting } from "../../src/pure/view/view";

import { PLAN, session, TYPES } from "../lab/chunks";

const fold = (view: View, chunk: Chunk): View => foldAll(view, [chunk]);
const kinds = (view: View) => view.items.map((item) => item.kind);
const item = <K extends Item["kind"]>(view: View, kind: K) =>
  view.items.find((one): one is Extract<Item, { kind: K }> => one.kind === kind);

describe("a reply", () => {
  it("grows with its deltas and is closed by its message", () => {
    const say = session();
    const first = foldAll(EMPTY, [
      say("run_started", { prompt: "Hi" }),
      say("delta", { text: "He" }),
      say("delta", { text: "llo" }),
    ]);
    expect(item(first, "text")).toMatchObject({ text: "Hello", done: false });
    const closed = fold(first, say("message", { text: "Hello." }));
    expect(item(closed, "text")).toMatchObject({ text: "Hello.", done: true });
    expect(kinds(closed)).toEqual(["user", "text"]);
  });

  it("is the same from a replay, which has no deltas", () => {
    const live = session();
    const replayed = session();
    const start = { prompt: "Hi" };
    const a = foldAll(EMPTY, [
      live("run_started", start),
      live("thinking", { text: "hm" }),
      live("delta", { text: "Hello" }),
      live("message", { text: "Hello", thinking: "hm" }),
    ]);
    const b = foldAll(EMPTY, [replayed("run_started", start), replayed("message", { text: "Hello", thinking: "hm" })]);
    expect(kinds(a)).toEqual(["user", "thinking", "text"]);
    expect(kinds(b)).toEqual(kinds(a));
    expect(b.items.map((one) => "text" in one && one.text)).toEqual(a.items.map((one) => "text" in one && one.text));
  });

  it("that was cut off is marked as a draft, live and from a replay", () => {
    const said = { text: "Half an an", partial: true };
    for (const deltas of [["Half ", "an an"], []]) {
      const say = session();
      const start = say("run_started", { prompt: "Hi" });
      const shown = deltas.map((text) => say("delta", { text }));
      const view = foldAll(EMPTY, [start, ...shown, say("message", said)]);
      expect(item(view, "text")).toMatchObject({ text: "Half an an", done: true, partial: true });
      expect(item(fold(view, say("message", { text: "Whole." })), "text")).toMatchObject({ partial: true });
    }
    const whole = session();
    const view = foldAll(EMPTY, [whole("run_started", {}), whole("message", { text: "Whole.", partial: false })]);
    expect(item(view, "text")).not.toHaveProperty("partial");
  });

  it("that only calls tools shows no empty text", () => {
    const say = session();
    const view = foldAll(EMPTY, [say("run_started", {}), say("message", { text: "" }), say("tool_call", {})]);
    expect(kinds(view)).toEqual(["user", "tool"]);
  });

  it("stands apart from the one before it", () => {
    const say = session();
    const view = foldAll(EMPTY, [
      say("run_started", {}),
      say("message", { text: "one" }),
      say("tool_call", {}),
      say("tool_response", {}),
      say("message", { text: "two" }),
    ]);
    expect(view.items.filter((one): one is TextItem => one.kind === "text").map((one) => one.text)).toEqual([
      "one",
      "two",
    ]);
  });

  it("is not swallowed by what the person says meanwhile", () => {
    const say = session();
    const view = foldAll(EMPTY, [
      say("run_started", {}),
      say("delta", { text: "a" }),
      say("message", { role: "user", text: "and b" }),
      say("delta", { text: "b" }),
      say("message", { text: "ab" }),
    ]);
    expect(view.items.map((one) => ("text" in one ? one.text : ""))).toEqual(["Hello", "ab", "and b"]);
    expect(item(view, "user")).toMatchObject({ steering: false });
  });

  it("of two agents at once is kept apart", () => {
    const say = session();
    const nested = { run: "r2", parent: "r1", agent: "researcher" };
    const view = foldAll(EMPTY, [
      say("run_started", {}),
      say("delta", { text: "A" }),
      say("delta", { text: "x" }, nested),
      say("delta", { text: "B" }),
      say("delta", { text: "y" }, nested),
    ]);
    expect(
      view.items.filter((one): one is TextItem => one.kind === "text").map((one) => [one.text, one.depth]),
    ).toEqual([
      ["AB", 0],
      ["xy", 1],
    ]);
  });
});

describe("what was learnt", () => {
  it("is told as learnt only where it holds, and else that it waits for the person", () => {
    const say = session();
    const lesson = { bulletId: "r1", content: "Use `make check`.", why: "command_replaced" };
    const view = foldAll(EMPTY, [
      say("run_started", { prompt: "Hi" }),
      say("bullet", { ...lesson, change: "proposed" }),
      say("bullet", { ...lesson, change: "add" }),
    ]);
    expect(view.items.filter(({ kind }) => kind === "line")).toMatchObject([
      { text: "Lesson pending review in the Playbook view: {content}", fields: { content: "Use `make check`." } },
      { text: "Learned: {content}" },
    ]);
  });
});

describe("a tool call", () => {
  it("shows its output while it runs, and then what came of it", () => {
    const say = session();
    const running = foldAll(EMPTY, [
      say("run_started", {}),
      say("tool_call", {}),
      say("tool_output", { id: "c1", text: "1\n" }),
      say("tool_output", { id: "c1", text: "2\n" }),
    ]);
    expect(item(running, "tool")).toMatchObject({ status: "running", output: "1\n2\n" });
    const done = fold(running, say("tool_response", { ok: false, outcome: "failed", result: "boom", durationMs: 12 }));
    expect(item(done, "tool")).toMatchObject({ status: "failed", result: "boom", durationMs: 12 });
  });

  it("takes the place of the question about it", () => {
    const say = session();
    const asked = foldAll(EMPTY, [say("run_started", {}), say("approval_asked", {})]);
    const key = item(asked, "approval")?.key;
    const called = foldAll(asked, [say("approval_given", {}), say("tool_call", { id: "c1", tool: "shell/run" })]);
    expect(kinds(called)).toEqual(["user", "tool"]);
    expect(item(called, "tool")).toMatchObject({ key, decision: "allow_once" });
  });

  it("carries the changes that it made", () => {
    const say = session();
    const view = foldAll(EMPTY, [say("run_started", {}), say("tool_call", {}), say("checkpoint", {}), say("edit", {})]);
    expect(item(view, "tool")?.edits).toHaveLength(1);
    expect(kinds(view)).toEqual(["user", "tool"]);
  });

  it("that was running when the run ended was interrupted", () => {
    const say = session();
    const view = foldAll(EMPTY, [
      say("run_started", {}),
      say("tool_call", {}),
      say("run_finished", { status: "cancelled" }),
    ]);
    expect(item(view, "tool")?.status).toBe("interrupted");
  });

  it("of which only the end is known is shown all the same", () => {
    const say = session();
    expect(kinds(foldAll(EMPTY, [say("run_started", {}), say("tool_response", { id: "unheard" })]))).toEqual([
      "user",
      "tool",
    ]);
  });
});

describe("questions", () => {
  it("wait until they are answered", () => {
    const say = session();
    const asked = foldAll(EMPTY, [say("run_started", {}), say("approval_asked", {}), say("input_asked", {})]);
    expect(waiting(asked).map((one) => one.kind)).toEqual(["approval", "question"]);
    const answered = foldAll(asked, [
      say("approval_given", { decision: "reject_once", feedback: "no" }),
      say("input_given", {}),
    ]);
    expect(waiting(answered)).toEqual([]);
    expect(item(answered, "approval")).toMatchObject({ decision: "reject_once", feedback: "no" });
    expect(item(answered, "question")).toMatchObject({ answer: "a" });
  });

  it("of an ended run wait no longer", () => {
    const say = session();
    const view = foldAll(EMPTY, [
      say("run_started", {}),
      say("approval_asked", {}),
      say("input_asked", {}),
      say("run_finished", {}),
    ]);
    expect(waiting(view)).toEqual([]);
  });
});

describe("a session", () => {
  it("shows a plan once, as it now is", () => {
    const say = session();
    const view = foldAll(EMPTY, [
      say("run_started", {}),
      say("plan", {}),
      say("message", { text: "ok" }),
      say("plan", { plan: { ...PLAN, status: "completed" } }),
    ]);
    expect(kinds(view)).toEqual(["user", "plan", "text"]);
    expect(item(view, "plan")?.plan.status).toBe("completed");
  });

  it("does not say a plan's summary again below the plan", () => {
    const say = session();
    const view = foldAll(EMPTY, [
      say("run_started", {}),
      say("plan", { plan: { ...PLAN, summary: "One step." } }),
      say("message", { role: "assistant", text: "One step." }, { agent: "planner" }),
      say("message", { role: "assistant", text: "Shall I?" }, { agent: "planner" }),
    ]);
    expect(view.items.flatMap((each) => (each.kind === "text" ? [each.quiet === true] : []))).toEqual([true, false]);
  });

  it("adds up what it used, nested runs too, and knows how full the context is", () => {
    const say = session();
    const view = foldAll(EMPTY, [
      say("run_started", {}),
      say("usage", { promptTokens: 100, completionTokens: 10, cost: 0.5 }),
      say("usage", { promptTokens: 7, completionTokens: 1 }, { run: "r2", parent: "r1" }),
    ]);
    expect(view.usage).toMatchObject({ promptTokens: 107, completionTokens: 11, cost: 0.5 });
    expect(view.contextTokens).toBe(110);
  });

  it("says how each run ended", () => {
    const say = session();
    const view = foldAll(EMPTY, [say("run_started", {}), say("run_finished", { status: "limit" })]);
    expect(view.run).toMatchObject({ status: "limit" });
    expect(item(view, "end")).toMatchObject({ status: "limit", seconds: 1 });
  });

  it("leaves out what was folded before, and what a newer server says", () => {
    const say = session();
    const start = say("run_started", {});
    const view = fold(EMPTY, start);
    expect(fold(view, start).items).toEqual(view.items);
    const unknown = { ...say("notice", {}), type: "hologram" } as unknown as Chunk;
    expect(fold(view, unknown).items).toEqual(view.items);
  });

  it("takes every kind of event, in any order, without breaking", () => {
    for (const first of TYPES) {
      const say = session();
      const chunks = [say("run_started", {}), say(first, {}), ...TYPES.map((type) => say(type, {})), say(first, {})];
      const view = foldAll(EMPTY, chunks);
      expect(view.lastSeq).toBe(chunks.length);
      expect(new Set(view.items.map((one) => one.key)).size).toBe(view.items.length);
    }
  });

  it("is the same folded one by one as folded at once, and leaves the former view as it was", () => {
    const say = session();
    const chunks = TYPES.map((type) => say(type, {}));
    const before = JSON.stringify(EMPTY);
    expect(chunks.reduce(fold, EMPTY)).toEqual(foldAll(EMPTY, chunks));
    expect(JSON.stringify(EMPTY)).toBe(before);
  });

  it("of ten thousand deltas folds in time that grows with their number alone", () => {
    const time = (count: number) => {
      const say = session();
      const chunks = [say("run_started", {}), ...Array.from({ length: count }, () => say("delta", { text: "word " }))];
      // This process's own work: others may be busy, too.
      const start = process.cpuUsage();
      foldAll(EMPTY, chunks);
      const { user, system } = process.cpuUsage(start);
      return (user + system) / 1000;
    };
    const best = (count: number) => Math.min(...Array.from({ length: 3 }, () => time(count)));
    time(2000);
    expect(best(20_000)).toBeLessThan(40 * Math.max(1, best(2000)));
  });
});

it("a long text keeps its start and its end", () => {
  expect(cutMiddle("short")).toBe("short");
  const cut = cutMiddle(`a${"x".repeat(100)}z`, 20);
  expect(cut).toMatch(/^a.*z$/s);
  expect(cut.length).toBeLessThan(30);
});

describe("what is said while Daiku works", () => {
  const say = session();
  const steer = () => say("message", { role: "user", text: "and the docs" });
  const begin = say("run_started", { prompt: "go" });
  const unread = (chunks: Chunk[]) => {
    const said = foldAll(EMPTY, [begin, ...chunks]).items.findLast((one) => one.kind === "user");
    return said?.kind === "user" && said.unread ? "waits" : "read";
  };
  const delta = () => say("delta", { text: "x" });
  const reply = () => say("message", { role: "assistant", text: "x", calls: [] });
  const call = () => say("tool_call", { id: "c", tool: "shell/run", args: {} });
  const done = () => say("tool_response", { id: "c", tool: "shell/run", outcome: "done", result: "" });

  it.each<[string, () => Chunk[], string]>([
    ["while a reply streams, waits until it has ended", () => [delta(), steer(), delta()], "waits"],
    ["while a reply streams, waits for what comes after it", () => [delta(), steer(), reply()], "waits"],
    ["while a reply streams, is read by the next one", () => [delta(), steer(), reply(), delta()], "read"],
    ["while a tool runs, waits for its end", () => [reply(), call(), steer(), done()], "waits"],
    ["while a tool runs, is read by the next reply", () => [reply(), call(), steer(), done(), delta()], "read"],
    ["before a reply streams, may not be in it", () => [steer(), delta(), reply()], "waits"],
    ["before a reply streams, is in the next one", () => [steer(), delta(), reply(), delta()], "read"],
    ["is read by a reply that comes whole", () => [delta(), steer(), reply(), reply()], "read"],
    ["waits for nothing when the run has ended", () => [delta(), steer(), say("run_finished", {})], "read"],
  ])("%s", (_, chunks, expected) => {
    expect(unread(chunks())).toBe(expected);
  });
});

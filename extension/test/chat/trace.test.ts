// The page of a trace: a tree with tokens, cost, time and bars, which leads back to places in the chat.

import { beforeEach, describe, expect, it } from "vitest";
import type { TraceResult, TraceSpan } from "../../src/contract.gen";
import { traceRows, traceSums } from "../../src/pure/server/traceRows";
import { reset, seen, settle, webviews } from "../editor/editor";
import { commandWorld } from "../lab/commands";

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString();
const span = (over: Partial<TraceSpan>): TraceSpan => ({
  ...{ key: "r", kind: "agent", name: "coordinator", run: "r", callId: "", seq: 1, start: at(0), durationMs: 10_000 },
  ...{ status: "ok", error: "", retries: 0 },
  ...over,
});
const used = (promptTokens: number, cost?: number) => ({
  ...{ model: "lab/one", promptTokens, completionTokens: 10, cachedTokens: 0 },
  ...(cost === undefined ? {} : { cost }),
});
const SPANS: TraceSpan[] = [
  span({ usage: used(3000, 0.03) }),
  span({ key: "c1", parent: "r", kind: "chat", name: "lab/one", seq: 1, durationMs: 2000, usage: used(1000, 0.01) }),
  span({ key: "t1", parent: "r", kind: "tool", name: "agent/handoff", callId: "call_1", seq: 5, start: at(2) }),
  span({ key: "n", parent: "t1", name: "runner", run: "n", seq: 7, start: at(2), durationMs: 4000 }),
  span({ key: "c2", parent: "n", kind: "chat", name: "lab/one", seq: 8, start: at(2), usage: used(500) }),
  span({
    ...{ key: "t2", parent: "n", kind: "tool", name: "shell/<run>", callId: "call_2", seq: 9, start: at(5) },
    ...{ durationMs: 1000, status: "failed", error: "denied", retries: 2 },
  }),
];
const result = (over: Partial<TraceResult> = {}): TraceResult => ({
  session: {
    ...{ sessionId: "s1", title: "Mend <it>", createdAt: at(0), updatedAt: at(0), lastSeq: 20, status: "completed" },
  },
  spans: SPANS,
  until: at(10),
  ...over,
});

beforeEach(() => {
  reset();
  for (const one of webviews.splice(0)) one.close();
});

describe("the rows of a trace", () => {
  it("stand below what they belong to, each with its own tokens, cost and place in time", () => {
    const rows = traceRows(result());
    expect(rows.map(({ span, level }) => [span.key, level])).toEqual([
      ...[
        ["r", 1],
        ["c1", 2],
        ["t1", 2],
        ["n", 3],
        ["c2", 4],
        ["t2", 4],
      ],
    ]);
    expect(rows[0]).toMatchObject({ tokensIn: 3000, cost: 0.03, from: 0, width: 100, parent: true });
    expect(rows[3]).toMatchObject({ tokensIn: 500, cost: undefined, from: 20, width: 40 });
    expect(rows[5]).toMatchObject({ tokensIn: 0, from: 50, width: 10, parent: false });
  });

  it("add up each call of a model once", () => {
    expect(traceSums(traceRows(result()))).toEqual({
      ...{ agents: 2, chats: 2, tools: 2, tokensIn: 1500, tokensOut: 20, cost: 0.01, durationMs: 10_000 },
      running: false,
    });
  });

  it("of what is under way last until now", () => {
    const { durationMs: _, ...open } = span({ status: "running" });
    const rows = traceRows(result({ spans: [open], until: at(30) }));
    expect(rows[0]).toMatchObject({ durationMs: 30_000, width: 100 });
    expect(traceSums(rows).running).toBe(true);
  });
});

describe("the page of a trace", () => {
  const world = async (answer: () => TraceResult = result) => {
    const made = commandWorld({
      "daiku/trace/get": answer,
      "daiku/session/get": () => ({ session: result().session, chunks: [] }),
      "daiku/session/export": () => ({ text: '{"event":"agent_start"}\n' }),
    });
    await made.run("showTrace", result().session);
    const page = webviews.at(-1);
    if (!page) throw new Error("no page was opened");
    return { ...made, page };
  };

  it("says everything as text, with nothing of it as HTML", async () => {
    const { page, asked } = await world();
    expect(asked("daiku/trace/get")).toEqual([{ sessionId: "s1" }]);
    for (const said of [
      "Mend &#60;it&#62;",
      "coordinator",
      "runner",
      "shell/&#60;run&#62;",
      "not allowed",
      "$0.030",
      "10 s",
    ])
      expect(page.html).toContain(said);
    expect(page.html).not.toContain("<it>");
    expect(page.html).toContain("Model calls: 2");
    expect(page.html).toContain("retries: 2");
  });

  it("is a tree that a screen reader and a keyboard can go through", async () => {
    const { page } = await world();
    expect(page.html).toContain('role="treegrid"');
    expect(page.html.match(/aria-level="4"/g)).toHaveLength(2);
    expect(page.html.match(/aria-expanded="true"/g)?.length).toBeGreaterThanOrEqual(3);
  });

  it("leads to the place in the chat, which is opened for it", async () => {
    const { page, posted, calls } = await world();
    page.press({ open: { seq: 9, callId: "call_2" } });
    await settle();
    expect(calls).toContain("reveal");
    expect(posted.at(-1)).toEqual({ type: "place", seq: 9, callId: "call_2" });
  });

  it("opens once for a chat, and the lines in an editor", async () => {
    const { page, run, asked } = await world();
    await run("showTrace", result().session);
    expect(webviews).toHaveLength(1);
    expect(page.sent).toHaveLength(1);
    expect(JSON.stringify(page.sent)).toContain("coordinator");
    page.press({ act: "lines" });
    await settle();
    expect(asked("daiku/session/export")).toEqual([{ sessionId: "s1", format: "trace" }]);
    expect(seen.opened).toEqual(["untitled:"]);
  });

  it("says so where there is no chat", async () => {
    const { run } = commandWorld();
    await run("showTrace");
    expect(seen.messages).toEqual(["No chat to show a trace for."]);
  });
});

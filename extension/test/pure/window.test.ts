// A conversation that is fetched by its end is the same once its older parts have come.

import { describe, expect, it } from "vitest";
import type { Chunk, EarlierChunks } from "../../src/contract.gen";
import { Stream } from "../../src/pure/chat/stream";
import { EMPTY, foldAll, prepend, withEarlier } from "../../src/pure/view/view";
import { PLAN, session } from "../lab/chunks";

/** Several runs with an edit, an undo, a plan and usage. */
function history(runs: number): Chunk[] {
  const say = session();
  return Array.from({ length: runs }, (_, n) => {
    const run = { run: `r${n}` };
    return [
      say("run_started", { prompt: `do ${n}` }, run),
      say("message", { role: "assistant", text: "I edit.", calls: [] }, run),
      say("tool_call", { id: `c${n}`, tool: "files/edit", args: {} }, run),
      say("edit", { files: [], checkpointId: `p${n}`, callId: `c${n}`, diff: "" }, run),
      say("tool_response", { id: `c${n}`, tool: "files/edit", ok: true, result: "done" }, run),
      say("plan", { plan: { ...PLAN, name: `plan ${n}` } }, run),
      say("usage", { promptTokens: 10, completionTokens: 1 }, run),
      ...(n % 2 ? [say("restored", { checkpointId: `p${n - 1}`, files: [], cannotUndo: [] }, run)] : []),
      say("run_finished", { status: "completed", text: "" }, run),
    ];
  }).flat();
}

describe("a session that is shown by its end", () => {
  const chunks = history(6);
  const starts = chunks.flatMap((chunk, n) => (chunk.type === "run_started" ? [n] : []));
  it.each(starts)("from chunk %i on is the same, once what lies before has come", (cut) => {
    const [older, newer] = [chunks.slice(0, cut), chunks.slice(cut)];
    const spent = older.filter(({ type }) => type === "usage").length;
    const usage = { model: "", promptTokens: 10 * spent, completionTokens: spent, cachedTokens: 0 };
    const earlier: EarlierChunks = { beforeSeq: newer[0]?.seq ?? 0, count: older.length, usage };
    const whole = foldAll(EMPTY, chunks);
    const view = prepend(withEarlier(foldAll(EMPTY, newer), earlier), older);
    const shown = (v: typeof whole) =>
      v.items.filter(({ kind }) => kind !== "plan").map(({ kind, key }) => [kind, key]);
    expect(shown(view)).toEqual(shown(whole));
    expect(view.usage.promptTokens).toBe(whole.usage.promptTokens);
    expect([...view.undone.gone]).toEqual([...whole.undone.gone]);
    const plans = view.items.flatMap((item) => (item.kind === "plan" ? [item.plan.name] : []));
    expect(plans).toEqual(["plan 5"]);
  });

  it("keeps its chunks in order when older ones are put before them", () => {
    const stream = new Stream();
    stream.fill(chunks.slice(20), chunks.length);
    stream.prepend(chunks.slice(0, 22));
    expect(stream.chunks).toEqual(chunks);
    expect(stream.lastSeq).toBe(chunks.length);
  });

  it("of 23,000 chunks is filled without looking through them for each message", () => {
    const long = history(2600);
    const stream = new Stream();
    const start = performance.now();
    stream.fill(long, long.length);
    expect(performance.now() - start).toBeLessThan(500);
  });
});

// Hunks, the steps of a plan, proofs, and what of a conversation was edited or undone.

import { describe, expect, it } from "vitest";
import type { ChangedFile, ChangeHunk, Plan } from "../../src/contract.gen";
import { forkPointsOf, lastEdits, plansOf } from "../../src/pure/chat/conversation";
import { nextStep, withMoved, withNewStep, withoutStep } from "../../src/pure/chat/steps";
import { foldEdit, NO_EDITS } from "../../src/pure/chat/undoState";
import { countOpen, firstWords, hunkAt, linesNow, stopFrom, stops } from "../../src/pure/diff/hunks";
import { proofsOf } from "../../src/pure/view/proofs";
import { session as chunksOf, PLAN } from "../lab/chunks";

const hunk = (newStart: number, newLines: number, over: Partial<ChangeHunk> = {}): ChangeHunk => ({
  ...{ hunkId: `h${newStart}`, oldStart: newStart, oldLines: 1, newStart, newLines, text: "-a\n+b\n" },
  ...{ state: "open" as const, touched: false },
  ...over,
});
const file = (path: string, ...hunks: ChangeHunk[]): ChangedFile => ({
  ...{ sessionId: "s1", path, kind: "edit", added: 1, removed: 1, hunks, binary: false },
});
const FILES = [
  file("a", hunk(2, 2), hunk(10, 0), hunk(20, 1, { state: "accepted" })),
  file("b", hunk(5, 1)),
  file("image"),
];

describe("hunks", () => {
  it("are counted while they are open; a file without any counts as one", () => {
    expect(countOpen(FILES)).toEqual({ changes: 4, files: 3 });
  });

  it("lie where their lines are, one without lines before the line after it", () => {
    expect(linesNow(hunk(2, 2))).toEqual({ start: 1, end: 3 });
    expect(linesNow(hunk(10, 0))).toEqual({ start: 10, end: 10 });
    expect(hunkAt(FILES[0] as ChangedFile, 2, "now", 30)?.newStart).toBe(2);
    expect(hunkAt(FILES[0] as ChangedFile, 3, "now", 30)).toBeUndefined();
    expect(hunkAt(FILES[0] as ChangedFile, 10, "now", 30)?.newStart).toBe(10);
    expect(hunkAt(FILES[0] as ChangedFile, 9, "now", 9)?.newStart).toBe(10);
  });

  it("are gone through in order over all files, in both directions, round at the ends", () => {
    const seen = (by: 1 | -1) => {
      const all: string[] = [];
      let [path, line] = ["a", by > 0 ? -1 : 0] as [string, number];
      for (let n = 0; n < 5; n++) {
        const stop = stopFrom(FILES, path, line, by);
        if (!stop) break;
        path = stop.path;
        line = stop.hunk ? linesNow(stop.hunk).start : 0;
        all.push(`${path}${stop.hunk ? line + 1 : ""}`);
      }
      return all;
    };
    expect(seen(1)).toEqual(["a2", "a11", "b5", "image", "a2"]);
    expect(seen(-1)).toEqual(["image", "b5", "a11", "a2", "image"]);
    expect(stopFrom([], undefined, 0, 1)).toBeUndefined();
    expect(stops(FILES)).toHaveLength(4);
  });

  it("are named by the first line that says something", () => {
    expect(firstWords(hunk(1, 1, { text: "-old\n+\n+  new words\n" }))).toBe("new words");
    expect(firstWords(hunk(1, 0, { text: "-  gone\n" }))).toBe("gone");
  });
});

describe("the steps of a plan", () => {
  const step = (id: string, ...dependsOn: string[]) => ({ ...PLAN.steps[0], stepId: id, name: id, dependsOn });
  const plan = { ...PLAN, steps: [step("a"), step("b", "a"), step("c", "b")] } as Plan;

  it("are moved, added and removed; what waited for a removed one waits for what that one waited for", () => {
    expect(withMoved(plan, "c", -1).map(({ stepId }) => stepId)).toEqual(["a", "c", "b"]);
    expect(withMoved(plan, "a", -1).map(({ stepId }) => stepId)).toEqual(["a", "b", "c"]);
    expect(withNewStep(plan, { name: "new" }, "a").map(({ name }) => name)).toEqual(["a", "new", "b", "c"]);
    expect(withoutStep(plan, "b").map(({ dependsOn }) => dependsOn)).toEqual([[], ["a"]]);
  });

  it("are worked at in the order of what they wait for", () => {
    expect(nextStep(plan)?.stepId).toBe("a");
    const [first, ...rest] = plan.steps;
    expect(nextStep({ ...plan, steps: [{ ...first, status: "completed" }, ...rest] } as Plan)?.stepId).toBe("b");
  });
});

describe("a conversation", () => {
  it("knows its plans as they are now, the newest last", () => {
    const say = chunksOf();
    const other = { ...PLAN, planId: "plan_2" };
    const changed = { ...PLAN, name: "Otherwise" };
    const chunks = [say("plan", {}), say("plan", { plan: other }), say("plan", { plan: changed })];
    expect(plansOf(chunks).map(({ name }) => name)).toEqual([PLAN.name, "Otherwise"]);
  });

  it("knows which edits do not stand: those of an undo and after it, unless they were brought back", () => {
    const say = chunksOf();
    const edit = (checkpointId: string) => say("edit", { checkpointId });
    const chunks = [say("run_started", {}), edit("1"), edit("2"), edit("3")];
    const back = [...chunks, say("restored", { checkpointId: "2", redo: "r" })];
    expect([...back.reduce(foldEdit, NO_EDITS).gone]).toEqual(["2", "3"]);
    expect(lastEdits(chunks)).toBe("1");
    expect(lastEdits([...chunks, say("restored", { checkpointId: "1" })])).toBeUndefined();
    const again = [...back, say("restored", { checkpointId: "r" })];
    expect([...again.reduce(foldEdit, NO_EDITS).gone]).toEqual([]);
  });

  it("can be gone on with before what the person said and after what Daiku said", () => {
    const say = chunksOf();
    const chunks = [
      say("run_started", { prompt: "First" }),
      say("message", { text: "Answer" }),
      say("message", { text: "Of another", role: "assistant" }, { parent: "r1", run: "r2" }),
      say("run_started", { prompt: "Second" }),
    ];
    expect(forkPointsOf(chunks)).toEqual([
      { atSeq: 0, who: "person", text: "First" },
      { atSeq: 2, who: "daiku", text: "Answer" },
      { atSeq: 3, who: "person", text: "Second" },
    ]);
  });

  it("proves a check by the last exit code of its command, until files change", () => {
    const say = chunksOf();
    const ran = (id: string, exitCode: number) => [
      say("tool_call", { id, tool: "shell/run", args: { command: "npm  test" } }),
      say("tool_response", { id, tool: "shell/run", data: { exitCode } }),
    ];
    const chunks = [...ran("1", 1), ...ran("2", 0)];
    expect(proofsOf(chunks).get("npm test")).toEqual({ callId: "2", exitCode: 0, stale: false });
    expect(proofsOf([...chunks, say("edit", {})]).get("npm test")?.stale).toBe(true);
  });
});

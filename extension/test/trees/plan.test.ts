// What the tree of the plan says of the checks of a step.

import { beforeEach, expect, it } from "vitest";
import type { Chunk, Step } from "../../src/contract.gen";
import { createPlanTree } from "../../src/trees/plan";
import { EventEmitter, reset, trees } from "../editor/editor";
import { session as chunksOf, PLAN } from "../lab/chunks";

beforeEach(reset);

/** The words beside the one check of a step in this state, after the chunks. */
async function wordsOf(status: Step["status"], exitCode: number | undefined, edited: boolean) {
  const say = chunksOf();
  const steps = PLAN.steps.map((step) => ({ ...step, status, acceptance: ["npm test"] }));
  const chunks: Chunk[] = [say("plan", { plan: { ...PLAN, steps } })];
  if (exitCode !== undefined)
    chunks.push(
      say("tool_call", { id: "c1", tool: "shell/run", args: { command: "npm  test" } }),
      say("tool_response", { id: "c1", tool: "shell/run", data: { exitCode } }),
    );
  if (edited) chunks.push(say("edit", {}));
  createPlanTree({ chunks, onChunks: new EventEmitter<readonly Chunk[]>().event }, () => undefined);
  const provider = trees.get("daiku.plan")?.provider;
  const [step] = (await provider?.getChildren()) ?? [];
  const [check] = (await provider?.getChildren(step)) ?? [];
  return (await provider?.getTreeItem(check))?.description;
}

it.each([
  ["in_progress", undefined, false, "not checked yet"],
  ["in_progress", 0, false, "exit code 0"],
  ["in_progress", 1, false, "exit code 1"],
  ["in_progress", 0, true, "files have changed since"],
  ["completed", 0, false, "exit code 0"],
  ["completed", 0, true, "exit code 0"],
  ["completed", undefined, true, "passed"],
] as const)(
  "a check of a step that is %s, with exit code %s, files changed since: %s",
  async (status, code, edited, words) => {
    expect(await wordsOf(status, code, edited)).toBe(words);
  },
);

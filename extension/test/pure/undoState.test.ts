// Undo and bringing back, in any order: cards and keys say what is on disk.

import { describe, expect, it } from "vitest";
import type { Chunk } from "../../src/contract.gen";
import { lastEdits, lastTakenBack } from "../../src/pure/chat/conversation";
import { editsOf, undoStateOf } from "../../src/pure/chat/undoState";
import { EMPTY, foldAll } from "../../src/pure/view/view";
import { session as chunksOf } from "../lab/chunks";

/** A generator that always begins alike, so that a failure comes again. */
function dice(seed: number) {
  let state = seed;
  return (sides: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

/** Files that are lists of the edits made in them: what the server's checkpoints do, in the smallest way. */
function story(seed: number) {
  const roll = dice(seed);
  const say = chunksOf();
  const chunks: Chunk[] = [say("run_started", {})];
  let disk: string[] = [];
  const taken = new Map<string, { disk: string[]; kind: "edit" | "back" }>();
  const told: { back: boolean; disk: string[] }[] = [];
  let n = 0;
  const keep = (kind: "edit" | "back") => {
    const name = `c${++n}`;
    taken.set(name, { disk: [...disk], kind });
    return name;
  };
  for (let move = 0; move < 12; move++) {
    const what = roll(4);
    const names = [...taken.keys()];
    if (what < 2 || names.length === 0) {
      const checkpointId = keep("edit");
      disk = [...disk, checkpointId];
      chunks.push(say("edit", { checkpointId }));
    } else {
      const redoable = what === 2 ? lastTakenBack(chunks) : undefined;
      const checkpointId = redoable ?? (names[roll(names.length)] as string);
      const redo = keep("back");
      const to = taken.get(checkpointId) as { disk: string[]; kind: "edit" | "back" };
      told.push({ back: to.kind === "back" && to.disk.length >= disk.length, disk: [...to.disk] });
      disk = [...to.disk];
      chunks.push(say("restored", { checkpointId, redo, files: [] }));
    }
  }
  return { chunks, disk, told };
}

describe("undo and bringing back, in any order", () => {
  const seeds = Array.from({ length: 300 }, (_, n) => n + 1);

  it("leave exactly those edits standing that are on disk", () => {
    for (const seed of seeds) {
      const { chunks, disk } = story(seed);
      const undone = undoStateOf(chunks);
      expect(
        editsOf(undone).filter((one) => !undone.gone.has(one)),
        `story ${seed}`,
      ).toEqual(disk);
      expect(lastEdits(chunks) !== undefined, `story ${seed}`).toBe(disk.length > 0);
    }
  });

  it("have cards that say which of the two it was", () => {
    for (const seed of seeds) {
      const { chunks, told } = story(seed);
      const cards = foldAll(EMPTY, chunks).items.flatMap((item) => (item.kind === "restored" ? [item.back] : []));
      expect(cards, `story ${seed}`).toEqual(told.map(({ back }) => back));
    }
  });
});

describe("what was taken back", () => {
  const say = chunksOf();
  const edit = (checkpointId: string) => say("edit", { checkpointId });
  const restored = (checkpointId: string, redo: string) => say("restored", { checkpointId, redo, files: [] });
  const began = [say("run_started", {}), edit("1")];
  const rejected = say("review", { decision: "reject", path: "a", hunks: 1, checkpointId: "v" });

  it.each<[string, Chunk[], string | undefined]>([
    ["nothing", [], undefined],
    ["an undo", [restored("1", "k1")], "k1"],
    ["an undo that was brought back", [restored("1", "k1"), restored("k1", "k2")], undefined],
    ["an undo, brought back and undone again", [restored("1", "k1"), restored("k1", "k2"), restored("1", "k3")], "k3"],
    ["an undo, and then a new edit", [restored("1", "k1"), edit("2")], undefined],
    ["a rejection", [rejected], "v"],
    ["a rejection that was brought back", [rejected, restored("v", "k1")], undefined],
    ["an acceptance", [say("review", { decision: "accept", path: "a", hunks: 1, checkpointId: "w" })], undefined],
  ])("%s can be brought back as long as it is gone", (_, chunks, expected) => {
    expect(lastTakenBack([...began, ...chunks])).toBe(expected);
  });
});

it("ten thousand edits are folded at a price that grows with their number, not with its square", () => {
  const say = chunksOf();
  const chunks = Array.from({ length: 10_000 }, (_, n) => say("edit", { checkpointId: `c${n}` }));
  const start = performance.now();
  expect(editsOf(undoStateOf(chunks))).toHaveLength(10_000);
  expect(performance.now() - start).toBeLessThan(100);
});

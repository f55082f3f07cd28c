// Undoing asks before it takes back what was accepted, and says what is true of the files.

import { beforeEach, describe, expect, it } from "vitest";
import type { Chunk } from "../../src/contract.gen";
import { person, reset, seen, settle } from "../editor/editor";
import { chatWorld } from "../lab/chat";
import { session as chunksOf } from "../lab/chunks";

beforeEach(reset);

describe("undoing", () => {
  const story = () => {
    const say = chunksOf("s1");
    const edit = (checkpointId: string, path: string) =>
      say("edit", { checkpointId, files: [{ path, kind: "edit", added: 1, removed: 1 }] });
    return { say, edit };
  };
  const opened = async (chunks: Chunk[]) => {
    const all = chatWorld();
    all.kept.push(...chunks);
    await all.chat.open("s1");
    return all;
  };
  const restores = ({ server }: ReturnType<typeof chatWorld>) =>
    server.asked.filter(({ method }) => method === "daiku/checkpoint/restore").map(({ params }) => params.checkpointId);

  it("asks first where it would take back what was accepted, and does nothing unless the person says so", async () => {
    const { say, edit } = story();
    const accepted = say("review", { decision: "accept", path: "a.py", hunks: 1, checkpointId: "v1" });
    const chunks = [say("run_started", {}), edit("c1", "a.py"), edit("c2", "b.py"), accepted];
    for (const [answer, expected] of [
      [undefined, []],
      ["Undo", ["c1"]],
    ] as const) {
      const all = await opened(chunks);
      person.picks = () => answer;
      all.panel({ type: "undo", checkpointId: "c1" });
      await settle();
      expect(seen.messages.at(-1)).toContain("a.py");
      expect(restores(all)).toEqual(expected);
    }
  });

  it("is done at once where nothing that was accepted is taken back", async () => {
    const { say, edit } = story();
    const before = say("review", { decision: "accept", path: "b.py", hunks: 1, checkpointId: "v0" });
    const rejected = say("review", { decision: "reject", path: "b.py", hunks: 1, checkpointId: "v1" });
    const all = await opened([say("run_started", {}), before, edit("c1", "a.py"), edit("c2", "b.py"), rejected]);
    all.panel({ type: "undo", checkpointId: "c1" });
    await settle();
    expect([seen.messages, restores(all)]).toEqual([[], ["c1"]]);
    expect(seen.status.at(-1)).toContain("Reverted 1 file.");
  });

  it("and bringing back say of the files what is true of them", async () => {
    const { say, edit } = story();
    const undone = say("restored", { checkpointId: "c1", redo: "k1", files: [] });
    const all = await opened([say("run_started", {}), edit("c1", "a.py"), undone]);
    all.panel({ type: "undo", checkpointId: "k1" });
    await settle();
    expect(seen.status.at(-1)).toContain("Reapplied Daiku's changes to 1 file.");
  });
});

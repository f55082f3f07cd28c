// What waits for a decision is what the server says of the folder, whichever chat is open and whether the server runs.

import { beforeEach, describe, expect, it } from "vitest";
import type { ChangedFile } from "../../src/contract.gen";
import { countOpen, stops } from "../../src/pure/diff/hunks";
import { createChanges } from "../../src/review/changes";
import { EventEmitter, quietLog, reset, seen, Uri } from "../editor/editor";
import { serverOf } from "../lab/server";

const fileOf = (sessionId: string, path: string, ...lines: number[]): ChangedFile => ({
  ...{ sessionId, path, kind: "edit", added: 1, removed: 1, binary: false },
  hunks: lines.map((line) => ({
    ...{ hunkId: `${path}${line}`, oldStart: line, oldLines: 1, newStart: line, newLines: 1, text: "-a\n+b\n" },
    ...{ state: "open" as const, touched: false },
  })),
});

function world(...first: ChangedFile[]) {
  let list = first;
  const server = serverOf({
    "daiku/changes/list": () => ({ files: list }),
    "daiku/changes/decide": ({ sessionId }: { sessionId: string }) => {
      list = list.filter((file) => file.sessionId !== sessionId);
      return { files: [], checkpointId: `back to ${sessionId}` };
    },
  });
  const [files, working] = [new EventEmitter<void>(), new EventEmitter<boolean>()];
  let current: string | undefined = "s1";
  const chat = {
    ...{ onFiles: files.event, onWorking: working.event, catchUp: async () => undefined },
    get current() {
      return current;
    },
  };
  const changes = createChanges(chat, server, quietLog);
  const open = (session: string | undefined) => {
    current = session;
    working.fire(false);
  };
  const become = (...next: ChangedFile[]) => {
    list = next;
    files.fire();
  };
  return { changes, server, open, become };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 60));

beforeEach(reset);

describe("the changes that wait", () => {
  it("are those of the folder: another chat, a new one or none leaves them where they are", async () => {
    const { changes, server, open } = world(fileOf("s1", "a.py", 1, 9), fileOf("s2", "b.py", 3));
    await changes.refresh();
    for (const session of ["s1", undefined, "s2", "s7"]) {
      open(session);
      await settled();
      expect(countOpen(changes.files)).toEqual({ changes: 3, files: 2 });
      expect(seen.context.get("daiku.changes")).toBe(3);
    }
    expect(server.asked.every(({ params }) => !("sessionId" in params))).toBe(true);
  });

  it("stay listed while the server is down, and are said to be as last heard of", async () => {
    const { changes, server, become } = world(fileOf("s1", "a.py", 1));
    expect([changes.known, seen.context.get("daiku.changesKnown")]).toEqual([false, undefined]);
    await changes.refresh();
    expect(changes.known).toBe(true);
    server.become("failed");
    await settled();
    expect([changes.known, changes.files.length, seen.context.get("daiku.changes")]).toEqual([false, 1, 1]);
    become();
    server.become("ready");
    await settled();
    expect([changes.known, changes.files.length, seen.context.get("daiku.changesKnown")]).toEqual([true, 0, true]);
  });

  it("are decided on in the chat that made them", async () => {
    const { changes, server } = world(fileOf("s1", "a.py", 1), fileOf("s2", "a.py", 5));
    await changes.refresh();
    const [first, second] = changes.of(Uri.file("/project/a.py"));
    expect([first?.sessionId, second?.sessionId]).toEqual(["s1", "s2"]);
    await changes.decide("accept", second as ChangedFile, ["a.py5"]);
    const { params } = server.asked.find(({ method }) => method === "daiku/changes/decide") ?? {};
    expect(params).toEqual({ sessionId: "s2", decision: "accept", path: "a.py", hunkIds: ["a.py5"] });
    expect(changes.files.map(({ sessionId }) => sessionId)).toEqual(["s1"]);
  });

  it("are decided on all together in every chat, and what is rejected can be brought back from each", async () => {
    const { changes } = world(fileOf("s1", "a.py", 1), fileOf("s2", "a.py", 5), fileOf("s1", "c.py", 2));
    await changes.refresh();
    expect(await changes.decideAll("reject")).toEqual(["back to s1", "back to s2"]);
    expect(changes.files).toEqual([]);
  });

  it("of one file are gone through from top to bottom and counted as one file, whoever made them", () => {
    const files = [fileOf("s1", "a.py", 1, 20), fileOf("s2", "a.py", 5), fileOf("s2", "b.py", 2)];
    expect(stops(files).map(({ path, hunk }) => `${path}${hunk?.newStart}`)).toEqual([
      ...["a.py1", "a.py5", "a.py20", "b.py2"],
    ]);
    expect(countOpen(files)).toEqual({ changes: 4, files: 2 });
  });

  it("are what the last question was answered, also where an older answer comes later", async () => {
    const answers: ((files: ChangedFile[]) => void)[] = [];
    const server = serverOf({
      "daiku/changes/list": () => new Promise((resolve) => answers.push((files) => resolve({ files }))),
    });
    const never = new EventEmitter<never>().event;
    const chat = { current: undefined, catchUp: async () => undefined, onFiles: never, onWorking: never };
    const changes = createChanges(chat, server, quietLog);
    const asking = [changes.refresh(), changes.refresh()];
    answers[1]?.([fileOf("s1", "new.py", 1)]);
    await asking[1];
    answers[0]?.([fileOf("s1", "old.py", 1)]);
    await asking[0];
    expect(changes.files.map(({ path }) => path)).toEqual(["new.py"]);
  });
});

// Commands on work items: each asks the server, and opens only what may be opened.

import { beforeEach, describe, expect, it } from "vitest";
import type { WorkItem } from "../../src/contract.gen";
import { person, reset, seen, settle, trees } from "../editor/editor";
import { commandWorld } from "../lab/commands";
import type { Answers } from "../lab/server";
import { itemOf } from "../lab/work";

beforeEach(reset);

const node = (over: Partial<WorkItem> = {}) => ({ kind: "item", item: itemOf("files:mend", over) });
const world = (answers: Answers = {}) => {
  const told = () => ({});
  const asked = { "daiku/work/pause": told, "daiku/work/resume": told, "daiku/work/retry": told };
  return commandWorld({ ...asked, "daiku/work/cancel": told, ...answers });
};
const commandsRun = () => seen.commands.map(({ name }) => name);

describe("an item", () => {
  it.each(["pause", "resume", "retry"])("is asked to %s", async (wanted) => {
    const { run, asked } = world();
    await run(`work.${wanted}`, node());
    expect(asked(`daiku/work/${wanted}`)).toEqual([{ item: "files:mend" }]);
  });

  it.each([
    ["processing", "pause"],
    ["queued", "pause"],
    ["waiting", "pause"],
    ["paused", "resume"],
    ["failed", "retry"],
    ["done", "retry"],
    ["stopped", "retry"],
  ] as const)("that is %s is asked by the one key to %s", async (state, wanted) => {
    const { run, server } = world();
    await run("work.toggle", node({ state }));
    expect(server.methods()).toEqual([`daiku/work/${wanted}`]);
  });

  it("of which something is wanted already is asked nothing more by the key", async () => {
    const { run, server } = world();
    await run("work.toggle", node({ wanted: "cancel" }));
    expect(server.methods()).toEqual([]);
  });

  it("is cancelled when the person is sure, and only where there is something to cancel", async () => {
    const { run, asked } = world();
    await run("work.cancel", node({ title: "Mend add" }));
    expect(asked("daiku/work/cancel")).toEqual([]);
    expect(seen.messages).toEqual(["Cancel work on “Mend add”?"]);
    person.picks = () => "Cancel Work Item";
    await run("work.cancel", node({ state: "done" }));
    expect(asked("daiku/work/cancel")).toEqual([]);
    await run("work.cancel", node());
    expect(asked("daiku/work/cancel")).toEqual([{ item: "files:mend" }]);
  });

  it("that refuses says why in the server's words", async () => {
    const answer = () => {
      throw Object.assign(new Error("raw"), { code: -32803, data: { kind: "usage", message: "It is over." } });
    };
    const { run } = world({ "daiku/work/pause": answer });
    await run("work.pause", node());
    expect(seen.messages).toEqual(["It is over."]);
  });
});

describe("what is opened", () => {
  it("is the item's chat, and without one what the item is", async () => {
    const { run, chat, calls } = world();
    await run("work.open", node({ sessionId: "s7" }));
    expect([chat.current, calls]).toEqual(["s7", ["reveal"]]);
    await run("work.open", node({ url: "https://example.org/3" }));
    expect(seen.opened).toEqual(["https://example.org/3"]);
  });

  it("is the page of the item or of its request", async () => {
    const { run } = world();
    const both = node({ url: "https://example.org/3", requestUrl: "https://example.org/mr/7" });
    await run("work.openPage", both);
    await run("work.openRequest", both);
    await run("work.openRequest", node());
    expect(seen.opened).toEqual(["https://example.org/3", "https://example.org/mr/7"]);
    expect(seen.messages).toEqual(["Nothing to open yet."]);
  });

  it.each(["command:workbench.action.quit", "vscode://x/y", "file:///bin/sh", "javascript:1"])(
    "is never %s",
    async (url) => {
      const { run } = world();
      await run("work.openPage", node({ url }));
      expect(seen.opened).toEqual([]);
      expect(commandsRun().filter((name) => name !== "setContext")).toEqual(["daiku.work.openPage"]);
    },
  );

  it("is the view, and the words on how to begin", async () => {
    const { run, server } = world();
    await run("workItems");
    expect(commandsRun()).toContain("daiku.work.focus");
    expect(server.starts.count).toBe(1);
    await run("work.guide");
    expect(String(seen.commands.at(-1)?.args[0])).toBe("file:///extension/docs/guide/work-items.md");
  });
});

describe("an item that is taken over", () => {
  const taking = (over: Partial<WorkItem>, folder: string) =>
    world({ "daiku/work/takeOver": () => ({ item: itemOf("files:mend", over), folder }) });
  const openings = () => seen.commands.filter(({ name }) => name === "vscode.openFolder");

  it("has its files opened in a window of their own, which is told of its chat", async () => {
    const { run, everywhere } = taking({ state: "paused", sessionId: "s7" }, "/home/items/mend");
    await run("work.takeOver", node());
    expect(openings().map(({ args }) => [String(args[0]), args[1]])).toEqual([
      ["file:///home/items/mend", { forceNewWindow: true }],
    ]);
    expect(everywhere.get("daiku.takenOver")).toMatchObject({ folder: "/home/items/mend", session: "s7" });
  });

  it("but is at a long step is left to that", async () => {
    const { run } = taking({ state: "processing", sessionId: "s7" }, "/home/items/mend");
    await run("work.takeOver", node({ title: "Mend add" }));
    expect(openings()).toEqual([]);
    expect(seen.messages).toEqual([
      "“Mend add” is still running a long step and pauses afterward. Take over once it has paused.",
    ]);
  });

  it("but was worked on another machine has its chat opened and its branch named", async () => {
    const { run, chat } = taking({ state: "paused", sessionId: "s7", branch: "daiku/mend" }, "");
    await run("work.takeOver", node());
    expect([chat.current, openings()]).toEqual(["s7", []]);
    expect(seen.messages).toEqual(["The files for “files:mend” are not on this computer. The branch is daiku/mend."]);
  });
});

describe("after an action", () => {
  it("the tree asks for the items anew", async () => {
    const { run, asked } = world({ "daiku/work/watch": () => new Promise(() => undefined) });
    trees.get("daiku.work")?.look();
    await run("work.pause", node());
    await settle();
    expect(asked("daiku/work/watch")).toEqual([{ revision: "" }, { revision: "" }]);
  });
});

// The tree of work items: what it says of each, in which order, and when it asks for news.

import { beforeEach, describe, expect, it } from "vitest";
import type { TreeItem } from "vscode";
import type { WorkItem } from "../../src/contract.gen";
import { createWorkTree, type WorkNode } from "../../src/trees/work";
import { reset, seen, settle, trees } from "../editor/editor";
import type { Answers } from "../lab/server";
import { itemOf, workServer } from "../lab/work";

beforeEach(reset);

async function looking(items: readonly WorkItem[], answers: Answers = {}) {
  const world = workServer(answers, items);
  const tree = createWorkTree(world.server);
  const shown = trees.get("daiku.work");
  const look = async (visible = true) => {
    shown?.look(visible);
    await settle();
  };
  await look();
  const rows = async (node?: WorkNode) => {
    const nodes = ((await shown?.provider.getChildren(node)) ?? []) as WorkNode[];
    const made = await Promise.all(nodes.map(async (one) => (await shown?.provider.getTreeItem(one)) as TreeItem));
    return { nodes, made };
  };
  /** The one item that there is, as its row. */
  const row = async () => {
    const { nodes } = await rows();
    const [made] = (await rows(nodes[0])).made;
    if (!made) throw new Error("no row");
    return made;
  };
  return { ...world, tree, look, rows, row };
}

describe("the items", () => {
  it("stand below their states, what waits for a person first, what is over last and folded", async () => {
    const states = ["done", "queued", "processing", "waiting", "failed", "paused", "stopped"] as const;
    const { rows, tree } = await looking([
      ...states.map((state) => itemOf(`files:${state}`, { state })),
      itemOf("files:second", { state: "queued" }),
    ]);
    const { made, nodes } = await rows();
    expect(made.map(({ label, description }) => `${label}: ${description}`)).toEqual([
      ...["Waiting for an answer: 1", "In progress: 1", "Paused: 1", "Queued: 2"],
      ...["Failed: 1", "Canceled: 1", "Done: 1"],
    ]);
    expect(made.map(({ collapsibleState }) => collapsibleState)).toEqual([2, 2, 2, 2, 2, 1, 1]);
    expect((await rows(nodes[3])).made.map(({ id }) => id)).toEqual(["files:queued", "files:second"]);
    expect(tree.view.badge).toMatchObject({ value: 1 });
  });

  it("say how far they are, what is wanted of them, and where their work is", async () => {
    const { row } = await looking([
      itemOf("gitlab:group/name#3", {
        ...{ title: "Add a discount", branch: "daiku/3-add", attempts: 2, wanted: "pause", sessionId: "s1" },
        ...{ progress: { done: 1, total: 3, step: "Count" }, url: "https://lab/3", requestUrl: "https://lab/mr/7" },
      }),
    ]);
    const made = await row();
    expect(made.label).toBe("Add a discount");
    expect(made.description).toBe(
      "pausing at the next step · 1/3 Count · group/name#3 · request !7 · daiku/3-add · attempt 2",
    );
    expect(made.contextValue).toBe("work.asked+chat+page+request");
    expect(made.accessibilityInformation?.label).toContain("Add a discount, In progress, pausing at the next step");
  });

  it("say why they failed, in one line and whole in the tooltip", async () => {
    const { row } = await looking([itemOf("github:o/n#1", { state: "failed", error: "No key.\nSet one." })]);
    const made = await row();
    expect(made.description).toBe("No key. · o/n#1");
    expect(String(made.tooltip)).toContain("Failed\nNo key.\nSet one.\ngithub:o/n#1");
    expect(made.contextValue).toBe("work.failed");
  });
});

describe("an item that is done", () => {
  it("has nothing left to do, however far its plan was", async () => {
    const progress = { done: 1, total: 2, step: "" };
    const { row } = await looking([itemOf("files:mend", { state: "done", branch: "daiku/mend", progress })]);
    const made = await row();
    expect([made.description, made.contextValue]).toEqual(["daiku/mend", "work.done"]);
    expect(String(made.tooltip)).toContain("Steps completed: 1/2");
    expect(made.iconPath).toMatchObject({ id: "pass-filled" });
  });
});

describe("an item that a limit ended", () => {
  it("is marked as unfinished, although its work is there to be reviewed", async () => {
    const { row } = await looking([itemOf("files:mend", { state: "done", error: "The last look found more." })]);
    const made = await row();
    expect(made.description).toContain("The last look found more.");
    expect(made.iconPath).toMatchObject({ id: "warning" });
  });
});

describe("what an item used of models", () => {
  const usage = { model: "m", promptTokens: 11_500, completionTokens: 500, cachedTokens: 0 };

  it.each([
    [{ ...usage, cost: 0.034 }, "Usage: 12k tokens · $0.034"],
    [usage, "Usage: 12k tokens"],
  ])("stands in its tooltip, with the cost where the price is known", async (used, line) => {
    const { row } = await looking([itemOf("files:mend", { state: "processing", usage: used })]);
    expect(String((await row()).tooltip).split("\n")).toContain(line);
  });
});

describe("news", () => {
  it("are drawn as they come, as long as somebody looks", async () => {
    const { tell, rows, look, server } = await looking([]);
    expect((await rows()).made).toEqual([]);
    expect(seen.context.get("daiku.workKnown")).toBe(true);
    tell(itemOf("files:mend"));
    await settle();
    expect((await rows()).made).toHaveLength(1);
    await look(false);
    const asked = server.asked.length;
    expect(server.cancelled).toBeGreaterThan(0);
    tell(itemOf("files:mend", { state: "done" }));
    await settle();
    expect(server.asked).toHaveLength(asked);
    await look();
    expect((await rows()).made.map(({ label }) => label)).toEqual(["Done"]);
  });

  it("are asked for again once the server is back, and not while it is away", async () => {
    const { server, tell, rows } = await looking([]);
    server.become("off");
    tell(itemOf("files:mend"));
    await settle();
    const asked = server.asked.length;
    server.become("ready");
    await settle();
    expect(server.asked.length).toBeGreaterThan(asked);
    expect((await rows()).made).toHaveLength(1);
  });

  it("that cannot be had are told in the view, until they can", async () => {
    const failure = Object.assign(new Error("raw"), { code: -32803, data: { message: "No database.", hint: "Look." } });
    let broken = true;
    const answer = () => {
      if (broken) throw failure;
      return new Promise(() => undefined);
    };
    const { tree, look } = await looking([], { "daiku/work/watch": answer });
    expect(tree.view.message).toBe("No database. Look.");
    broken = false;
    await look();
    expect(tree.view.message).toBe("No database. Look.");
  });
});

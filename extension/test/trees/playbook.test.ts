// The tree of the playbook: what stands in it and how it is called, and when it asks for news.

import { beforeEach, describe, expect, it } from "vitest";
import type { TreeItem } from "vscode";
import { createPlaybookTree } from "../../src/trees/playbook";
import type { PlaybookNode } from "../../src/trees/playbookRows";
import { reset, seen, settle, trees, trust } from "../editor/editor";
import { bulletOf, playbookAnswers, shownOf } from "../lab/playbook";
import { type Answers, serverOf } from "../lab/server";

beforeEach(reset);

const EVIDENCE = { sessionId: "s1", runId: "r1", seq: 41, title: "Make the tests pass" };

async function looking(first: Parameters<typeof playbookAnswers>[0] = {}, more: Answers = {}) {
  const { answers, kept, tell } = playbookAnswers(first);
  const server = serverOf({ ...answers, ...more });
  const tree = createPlaybookTree(server);
  const shown = trees.get("daiku.playbook");
  const look = async (visible = true) => {
    shown?.look(visible);
    await settle();
  };
  await look();
  const below = async (node?: PlaybookNode) => ((await shown?.provider.getChildren(node)) ?? []) as PlaybookNode[];
  const row = async (node: PlaybookNode) => (await shown?.provider.getTreeItem(node)) as TreeItem;
  const rows = async (node?: PlaybookNode) => Promise.all((await below(node)).map(row));
  const words = async (node?: PlaybookNode) =>
    (await rows(node)).map(({ label, description }) => [label, description].filter(Boolean).join(" | "));
  return { server, tree, kept, tell, look, below, row, rows, words };
}

describe("lessons", () => {
  it("stand below their sections, in words, those of the folder before those of the person", async () => {
    const { words, below } = await looking({
      repository: [
        bulletOf("bat-00001", { section: "build_and_test_commands", content: "Run npm test.", helpful: 3, harmful: 1 }),
        bulletOf("com-00001"),
      ],
      user: [bulletOf("com-90001", { content: "Answer briefly." }), bulletOf("x-1", { section: "my_own" })],
    });
    expect(await words()).toEqual([...["Build and test commands | 1", "Common mistakes | 2", "my own | 1"], "History"]);
    const [commands, mistakes] = await below();
    expect(await words(commands)).toEqual(["+3 −1  Run npm test. | bat-00001"]);
    expect(await words(mistakes)).toEqual([
      "What com-00001 says. | com-00001",
      "Answer briefly. | all folders · com-90001",
    ]);
  });

  it("are drawn at once also where there are ten thousand, each of a section of its own, and all rest", async () => {
    const repository = Array.from({ length: 10_000 }, (_, n) => bulletOf(`a-${n}`, { section: `section ${n}` }));
    const { below, look, tell } = await looking({ repository, resting: repository.map(({ id }) => id) });
    expect(await below()).toHaveLength(10_001);
    const start = performance.now();
    tell();
    await look();
    expect(await below((await below())[9_999])).toHaveLength(1);
    expect(performance.now() - start).toBeLessThan(2000);
  });

  it("of a folder that is not trusted are not there, which is said", async () => {
    trust(false);
    const { tree, words } = await looking({ user: [bulletOf("my-1", { content: "Answer briefly." })] });
    expect(tree.view.message).toBe("This folder is not trusted. Only your personal lessons are shown.");
    expect(await words()).toEqual(["Common mistakes | 1", "History"]);
  });

  it("of one section stand together however it is spelt", async () => {
    const { words } = await looking({
      repository: [bulletOf("a-1", { section: "Tool usage" }), bulletOf("a-2", { section: "tool_usage" })],
    });
    expect((await words())[0]).toBe("Tool usage | 2");
  });

  it("that are disabled or rest are marked, and read out so", async () => {
    const { below, rows } = await looking({
      repository: [bulletOf("a-1", { active: false }), bulletOf("a-2", { harmful: 3 }), bulletOf("a-3")],
      resting: ["a-2"],
    });
    const [section] = await below();
    const made = await rows(section);
    expect(made.map(({ description }) => description)).toEqual(["disabled · a-1", "suspended · a-2", "a-3"]);
    expect(made.map(({ contextValue }) => contextValue)).toEqual(["lesson.inactive", "lesson.active", "lesson.active"]);
    expect(made[1]?.accessibilityInformation?.label).toBe("What a-2 says., suspended, Runs helped: 0, harmed: 3, a-2");
    expect((await rows())[0]?.description).toBe("3 · 1 disabled");
  });

  it("were decided on and changed, the newest first, on demand", async () => {
    const { words, below, server } = await looking({
      repository: [bulletOf("a-1")],
      deltas: [shownOf("d1", { status: "applied", bulletId: "a-1" }), shownOf("d2", { status: "rejected" })],
    });
    const asked = () => server.asked.filter(({ params }) => params.statuses).map(({ params }) => params.newest);
    expect(asked()).toEqual([]);
    expect(await words((await below()).at(-1))).toEqual([
      expect.stringMatching(/^new \| rejected · .*What d2 proposes\.$/),
      expect.stringMatching(/^new: a-1 \| .*What d1 proposes\.$/),
    ]);
    expect(asked()).toEqual([100]);
  });

  it("of several lines show the first, and all in the tooltip", async () => {
    const { below, rows } = await looking({ repository: [bulletOf("a-1", { content: "One.\nTwo." })] });
    const [section] = await below();
    const [made] = await rows(section);
    expect(made?.label).toBe("One. …");
    expect(String(made?.tooltip)).toContain("One.\nTwo.");
  });

  it("unfold into what runs showed of them, and their changes, the newest first", async () => {
    const deltas = [
      shownOf("d1", { status: "applied", bulletId: "a-1" }),
      shownOf("d2", { status: "undone", type: "update", bulletId: "a-1" }),
    ];
    const observations = [
      { verdict: "harmful", why: "command_failed", place: EVIDENCE, counted: true },
      { verdict: "helpful", why: "command_passed", place: EVIDENCE, counted: false },
    ];
    const show = () => ({ bullet: bulletOf("a-1"), history: deltas, observations });
    const { below, words, rows } = await looking({ repository: [bulletOf("a-1")] }, { "daiku/playbook/show": show });
    const [lesson] = await below((await below())[0]);
    expect(await words(lesson)).toEqual([
      "Harmful | its command failed · Make the tests pass",
      "Helpful | its command passed · for an earlier version, not counted · Make the tests pass",
      expect.stringMatching(/^edited \| undone · /),
      expect.stringMatching(/^new \| /),
    ]);
    const made = await rows(lesson);
    expect(made[0]?.command).toMatchObject({ command: "daiku.playbook.openPlace", arguments: [EVIDENCE] });
    expect(made.map(({ contextValue }) => contextValue).slice(2)).toEqual([
      ...["change.undone.update", "change.applied.add"],
    ]);
  });
});

describe("a history that cannot be had", () => {
  it("says why in its place", async () => {
    const show = () => {
      throw Object.assign(new Error("raw"), { code: -32803, data: { message: "There is no bullet a-1." } });
    };
    const { below, words } = await looking({ repository: [bulletOf("a-1")] }, { "daiku/playbook/show": show });
    const [lesson] = await below((await below())[0]);
    expect(await words(lesson)).toEqual(["There is no bullet a-1."]);
  });
});

describe("what waits for the person", () => {
  const proposal = shownOf(
    "d1",
    { type: "update", bulletId: "a-1", content: "Run npm test -- --run.", why: "It hung.", doubts: ["tainted"] },
    { diff: "@@ a-1 @@\n-Run npm test.\n+Run npm test -- --run.\n", places: [EVIDENCE] },
  );

  it("stands on top and is counted", async () => {
    const { tree, words, below } = await looking({ repository: [bulletOf("a-1")], deltas: [proposal, shownOf("d2")] });
    expect((await words())[0]).toBe("2 lessons to review");
    expect(tree.view.badge).toMatchObject({ value: 2, tooltip: "2 lessons to review" });
    expect(await words((await below())[0])).toEqual([
      "Run npm test -- --run. | edited: a-1 · Common mistakes · notes: 1",
      "What d2 proposes. | new · Common mistakes",
    ]);
  });

  it("shows its difference, why, what to know about it, and source", async () => {
    const { below, words, rows } = await looking({ repository: [], deltas: [proposal] });
    const [waiting] = await below();
    const [change] = await below(waiting);
    expect(await words(change)).toEqual([
      ...[
        "Run npm test.",
        "Run npm test -- --run.",
        "It hung.",
        "Learned from a run that read untrusted external content.",
      ],
      "Make the tests pass | source · #41",
    ]);
    const labels = (await rows(change)).map(({ accessibilityInformation }) => accessibilityInformation?.label);
    expect(labels).toEqual([
      ...["Removed: Run npm test.", "Added: Run npm test -- --run.", "Reason: It hung."],
      ...["Note: Learned from a run that read untrusted external content.", "Learned in chat: Make the tests pass"],
    ]);
    expect((await rows(waiting))[0]?.collapsibleState).toBe(2);
  });

  it("says the first line of a new lesson once, and why in words", async () => {
    const lines = shownOf(
      "d2",
      { content: "One.\nTwo.", why: "command_replaced" },
      { diff: "@@ x @@\n+One.\n+Two.\n" },
    );
    const { below, words, rows } = await looking({ deltas: [shownOf("d1"), lines] });
    const [waiting] = await below();
    const [one, two] = await below(waiting);
    expect([await words(one), await words(two)]).toEqual([[], ["Two.", "Another command passed instead"]]);
    expect((await rows(waiting)).map(({ collapsibleState }) => collapsibleState)).toEqual([0, 2]);
  });

  it("says which lines are keywords, as the server calls them", async () => {
    const shown = shownOf("d1", { content: "One.\nTwo." }, { diff: "@@ x @@\n+One.\n+Two.\n+Keywords: npm, test\n" });
    const { below, words } = await looking({ deltas: [shown] });
    const [waiting] = await below();
    const [change] = await below(waiting);
    expect(await words(change)).toEqual(["Two.", "Keywords: npm, test"]);
  });

  it("is folded where it is much", async () => {
    const { below, rows } = await looking({
      deltas: ["d1", "d2", "d3", "d4"].map((id) => shownOf(id, { why: "It hung." })),
    });
    const [waiting] = await below();
    expect((await rows(waiting)).map(({ collapsibleState }) => collapsibleState)).toEqual([1, 1, 1, 1]);
  });
});

describe("a search", () => {
  it("shows what the server found, in its order, until all is shown again", async () => {
    const { tree, words } = await looking({
      repository: [bulletOf("a-1", { content: "npm test" }), bulletOf("a-2"), bulletOf("a-3", { content: "npm ci" })],
      user: [bulletOf("b-1", { content: "npm, always" })],
      deltas: [shownOf("d1")],
    });
    await tree.search(" npm ");
    expect((await words()).join()).not.toContain("to review");
    expect(await words()).toEqual(["npm test | a-1", "npm ci | a-3", "npm, always | all folders · b-1"]);
    expect([tree.view.message, seen.context.get("daiku.playbookSearched")]).toEqual(["Lessons similar to “npm”", true]);
    await tree.search("yarn");
    expect([await words(), tree.view.message]).toEqual([[], "No lessons are similar to “yarn”."]);
    await tree.search("");
    expect([(await words())[1], tree.view.message]).toEqual(["Common mistakes | 4", ""]);
  });
});

describe("news", () => {
  it("are drawn as they come, as long as somebody looks", async () => {
    const { server, kept, tell, words, look } = await looking({ repository: [] });
    expect([await words(), seen.context.get("daiku.playbookState")]).toEqual([[], "known"]);
    kept.repository = [bulletOf("a-1")];
    tell();
    await settle();
    expect((await words())[0]).toBe("Common mistakes | 1");
    await look(false);
    const asked = server.asked.length;
    tell();
    await settle();
    expect([server.asked.length, server.cancelled > 0]).toEqual([asked, true]);
    kept.repository = [];
    await look();
    expect(await words()).toEqual([]);
  });

  it("are counted after a run, also where nobody looks, and no longer than that", async () => {
    const { server, tree, kept, tell, look } = await looking({ repository: [] });
    await look(false);
    tree.expect();
    await settle();
    kept.deltas = [shownOf("d1")];
    tell();
    await settle();
    expect(tree.view.badge).toMatchObject({ value: 1 });
    tell();
    await settle();
    const asked = server.asked.length;
    tell();
    await settle();
    expect(server.asked).toHaveLength(asked);
  });

  it("that are waited for are said to be, until they have come", async () => {
    await looking({ repository: [] }, { "daiku/playbook/list": () => new Promise(() => undefined) });
    expect(seen.context.get("daiku.playbookState")).toBe("asking");
  });

  it("of a folder without a playbook of its own are those of the person", async () => {
    const { server, words } = await looking({ user: [bulletOf("a-1")] });
    expect((await words())[0]).toBe("Common mistakes | 1");
    expect(server.asked.filter(({ method }) => method.endsWith("list")).map(({ params }) => params.scope)).toEqual([
      "user",
    ]);
  });

  it("that cannot be had are told with what to do, and asked for again", async () => {
    const data = { message: "The database is locked.", hint: "Close the other program." };
    let broken = true;
    const list = () => {
      if (broken) throw Object.assign(new Error("raw"), { code: -32803, data });
      return { bullets: [bulletOf("a-1")], resting: [], sections: [] };
    };
    const { tree, words } = await looking({ repository: [] }, { "daiku/playbook/list": list });
    expect(tree.view.message).toBe("The database is locked. Close the other program.");
    expect(seen.context.get("daiku.playbookState")).toBe("failed");
    broken = false;
    await tree.refresh();
    expect([tree.view.message, (await words())[0]]).toEqual(["", "Common mistakes | 2"]);
    expect(seen.context.get("daiku.playbookState")).toBe("known");
  });

  it("are asked for again once the server is back, and not while it is away", async () => {
    const { server, kept, tell, words } = await looking({ repository: [] });
    server.become("off");
    kept.repository = [bulletOf("a-1")];
    tell();
    await settle();
    const asked = server.asked.length;
    server.become("ready");
    await settle();
    expect(server.asked.length).toBeGreaterThan(asked);
    expect((await words())[0]).toBe("Common mistakes | 1");
  });
});

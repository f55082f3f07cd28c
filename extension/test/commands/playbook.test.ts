// Commands of the playbook: what waits is decided, lessons are changed by the server, and the last change is taken back.

import { beforeEach, describe, expect, it } from "vitest";
import type { TreeItem } from "vscode";
import type { PlaybookNode } from "../../src/trees/playbookRows";
import { editorOf, person, reset, seen, settle, trees, Uri, window } from "../editor/editor";
import { session as chunksOf } from "../lab/chunks";
import { commandWorld } from "../lab/commands";
import { bulletOf, playbookAnswers, shownOf } from "../lab/playbook";
import type { Answers } from "../lab/server";

beforeEach(reset);

async function looking(first: Parameters<typeof playbookAnswers>[0] = {}, more: Answers = {}) {
  const { answers } = playbookAnswers(first);
  const world = commandWorld({ ...answers, ...more });
  const shown = trees.get("daiku.playbook");
  shown?.look();
  await settle();
  const below = async (node?: PlaybookNode) => ((await shown?.provider.getChildren(node)) ?? []) as PlaybookNode[];
  /** The node whose row says `text`, in the two upper levels. */
  const nodeOf = async (text: string) => {
    for (const root of await below())
      for (const node of [root, ...(await below(root))])
        if (String(((await shown?.provider.getTreeItem(node)) as TreeItem | undefined)?.label).includes(text))
          return node;
    throw new Error(`no row ${text}`);
  };
  const asked = (method: string) => world.asked(`daiku/playbook/${method}`);
  return { ...world, chunks: world.kept, below, nodeOf, asked };
}
const revealed = () => seen.revealed.map((row) => (row as TreeItem).label);
const two = () => ({ repository: [], deltas: [shownOf("d1"), shownOf("d2")] });

describe("what waits", () => {
  it("is kept, and the next one has the focus; after the last the new lesson has it", async () => {
    const { run, nodeOf, asked } = await looking(two());
    await run("playbook.toggle", await nodeOf("What d1 proposes."));
    expect(asked("review")).toEqual([{ accept: [{ id: "d1" }] }]);
    expect([revealed(), seen.status]).toEqual([["What d2 proposes."], ["$(check) Lesson accepted."]]);
    await run("playbook.accept", await nodeOf("What d2 proposes."));
    expect(revealed().at(-1)).toBe("What d2 proposes.");
    expect((seen.revealed.at(-1) as TreeItem).contextValue).toBe("lesson.active");
  });

  it("is not kept, by either command", async () => {
    const { run, nodeOf, asked } = await looking(two());
    await run("playbook.remove", await nodeOf("What d1 proposes."));
    await run("playbook.reject", await nodeOf("What d2 proposes."));
    expect(asked("review")).toEqual([{ reject: ["d1"] }, { reject: ["d2"] }]);
  });

  it("is reworded and kept, kept as it is where nothing is changed, and left where the person goes away", async () => {
    const { run, nodeOf, asked } = await looking(two());
    const node = await nodeOf("What d1 proposes.");
    await run("playbook.edit", node);
    expect(asked("review")).toEqual([]);
    person.writes = (title) => (title === "Edit and accept lesson" ? "Run it ⏎ twice. " : undefined);
    await run("playbook.edit", node);
    person.writes = () => "What d2 proposes.";
    await run("playbook.edit", await nodeOf("What d2 proposes."));
    expect(asked("review")).toEqual([
      { accept: [{ id: "d1", content: "Run it\ntwice." }] },
      { accept: [{ id: "d2" }] },
    ]);
  });

  it("is decided from what says more of it, and from its diff by mouse and key", async () => {
    const { run, nodeOf, below, asked } = await looking({
      deltas: ["d1", "d2", "d3"].map((id) => shownOf(id, { why: "It hung." })),
    });
    const [fact] = await below(await nodeOf("What d1 proposes."));
    expect(fact?.kind).toBe("fact");
    await run("playbook.accept", fact);
    await run("playbook.reject", Uri.from({ scheme: "daiku-lesson", path: "/d2/proposal.md" }));
    window.activeTextEditor = editorOf("a.md", "");
    Object.assign(window.activeTextEditor.document, {
      uri: Uri.from({ scheme: "daiku-lesson", path: "/d3/proposal.md" }),
    });
    await run("playbook.accept");
    expect(asked("review")).toEqual([{ accept: [{ id: "d1" }] }, { reject: ["d2"] }, { accept: [{ id: "d3" }] }]);
  });

  it("that the server refuses stays, and why is told", async () => {
    const refused = [{ id: "d1", message: "It is another one by now." }];
    const review = () => ({ decided: [], refused, redacted: false });
    const { run, nodeOf } = await looking(two(), { "daiku/playbook/review": review });
    await run("playbook.accept", await nodeOf("What d1 proposes."));
    expect([seen.messages, seen.status]).toEqual([["It is another one by now."], []]);
    expect(await nodeOf("2 lessons to review")).toBeTruthy();
  });

  it("that is decided already is not decided again", async () => {
    const { run, asked } = await looking();
    const node = { kind: "change", shown: shownOf("d1", { status: "applied" }) };
    for (const act of ["accept", "reject", "edit", "toggle"]) await run(`playbook.${act}`, node);
    expect(asked("review")).toEqual([]);
  });

  it("shows its difference, both sides", async () => {
    const diff = "@@ a-1 @@\n-Old.\n+New.\n@@ a-2 @@\n Same.\n-Gone.\n";
    const { run } = await looking();
    await run("playbook.diff", { kind: "change", shown: shownOf("d1", { type: "merge", bulletId: "a-1" }, { diff }) });
    const [left, right, title] = (seen.commands.findLast(({ name }) => name === "vscode.diff")?.args ?? []) as Uri[];
    expect([left?.query, right?.query, title]).toEqual([
      ...["a-1\nOld.\na-2\nSame.\nGone.", "a-1\nNew.\na-2\nSame.", "Lesson (merged: a-1)"],
    ]);
    expect(right?.path).toBe("/d1/proposal.md");
  });

  it("opens the place that it was learnt from in its chat", async () => {
    const { run, chat, posted, calls, chunks } = await looking();
    const say = chunksOf("s7");
    chunks.push(say("tool_call", { id: "c1" }, { seq: 38 }), say("tool_response", { id: "c1" }, { seq: 41 }));
    await run("playbook.openPlace", { sessionId: "s7", runId: "r1", seq: 41, title: "" });
    expect([chat.current, calls]).toEqual(["s7", ["reveal"]]);
    expect(posted.at(-1)).toEqual({ type: "place", seq: 38, callId: "c1" });
    await run("playbook.openPlace", { kind: "place", place: { sessionId: "s7", runId: "r1", seq: 60, title: "" } });
    expect(posted.at(-1)).toEqual({ type: "place", seq: 60, callId: "" });
  });
});

describe("a lesson", () => {
  const one = () => ({ repository: [bulletOf("a-1", { content: "One.\nTwo." })] });

  it("is switched off and on by the one key, and off by the other", async () => {
    const { run, nodeOf, asked } = await looking(one());
    await run("playbook.toggle", await nodeOf("One."));
    await run("playbook.toggle", await nodeOf("One."));
    await run("playbook.remove", await nodeOf("One."));
    await run("playbook.remove", await nodeOf("One."));
    expect(asked("update").map(({ active }) => active)).toEqual([false, true]);
    expect(asked("remove")).toEqual([{ id: "a-1" }]);
  });

  it("is read whole in the editor", async () => {
    const { run, nodeOf } = await looking(one());
    await run("playbook.open", await nodeOf("One."));
    expect(seen.opened.map((uri) => Uri.parse(uri).path)).toEqual(["/a-1/a-1.md"]);
    expect(Uri.parse(seen.opened[0] ?? "").query).toContain("One.\nTwo.\n\na-1 · Common mistakes");
  });

  it("is reworded, its lines kept", async () => {
    const { run, nodeOf, asked } = await looking(one());
    person.writes = (title) => (title === "Edit lesson a-1" ? "One. ⏎ Three." : undefined);
    await run("playbook.edit", await nodeOf("One."));
    expect(asked("update")).toEqual([{ id: "a-1", content: "One.\nThree." }]);
  });

  it("is added where the person says", async () => {
    const { run, asked } = await looking(one());
    person.writes = (title) => (title === "New lesson" ? "Be brief." : undefined);
    person.chooses = (labels) => labels.findIndex((label) => /For me|Common mistakes/.test(label));
    await run("playbook.add");
    expect(asked("add")).toEqual([{ content: "Be brief.", section: "common_mistakes", scope: "user" }]);
    expect(revealed()).toEqual(["Be brief."]);
  });

  it("is added to a section that the person names, and to none where they go away", async () => {
    const { run, asked } = await looking({ user: [] });
    person.chooses = (labels) => labels.length - 1;
    person.writes = (title) => (title === "New lesson" ? "Be brief." : undefined);
    await run("playbook.add");
    expect(asked("add")).toEqual([]);
    person.writes = (title) => (title === "New lesson" ? "Be brief." : "style");
    await run("playbook.add");
    expect(asked("add")).toEqual([{ content: "Be brief.", section: "style", scope: "user" }]);
  });

  it("is shown by its id, also where something else was searched", async () => {
    const { run } = await looking(one());
    await run("playbook.show", "a-1");
    await run("playbook.show", "a-2");
    expect([revealed(), seen.messages]).toEqual([["One. …"], ["Lesson not found: a-2"]]);
    expect(seen.commands.map(({ name }) => name)).toContain("daiku.playbook.focus");
  });

  it("of which a secret was taken out is told so", async () => {
    const update = () => ({ deltas: [], redacted: true });
    const { run, nodeOf } = await looking(one(), { "daiku/playbook/update": update });
    person.writes = () => "The key is sk-1.";
    await run("playbook.edit", await nodeOf("One."));
    expect(seen.messages).toEqual(["Secrets were removed from the text."]);
  });

  it("is looked for in words, and the first that is found has the focus", async () => {
    const { run } = await looking({ repository: [bulletOf("a-1", { content: "npm test" }), bulletOf("a-2")] });
    person.writes = () => "npm";
    await run("playbook.search");
    expect(revealed()).toEqual(["npm test"]);
  });
});

describe("taking back", () => {
  it("takes back the change that is pointed at", async () => {
    const { run, asked } = await looking();
    await run("playbook.undo", { kind: "change", shown: shownOf("d9", { status: "applied" }) });
    expect([asked("review"), seen.status]).toEqual([[{ undo: ["d9"] }], ["$(discard) Undone."]]);
  });

  it("lets wait again what was rejected", async () => {
    const review = () => ({ decided: [shownOf("d9", { status: "proposed" })], refused: [], redacted: false });
    const { run, asked } = await looking({}, { "daiku/playbook/review": review });
    await run("playbook.undo", { kind: "change", shown: shownOf("d9", { status: "rejected" }) });
    expect([asked("review"), seen.status]).toEqual([
      [{ undo: ["d9"] }],
      ["$(discard) The lesson is pending review again."],
    ]);
  });

  it("else the last one of this window, and then the one before it", async () => {
    const { run, nodeOf, asked } = await looking(two());
    await run("playbook.undo");
    expect(seen.status).toEqual(["Nothing to undo."]);
    await run("playbook.accept", await nodeOf("What d1 proposes."));
    await run("playbook.toggle", await nodeOf("Common mistakes").then(async () => nodeOf("What d1 proposes.")));
    for (let n = 0; n < 3; n++) await run("playbook.undo");
    expect(asked("review").slice(1)).toEqual([{ undo: ["d-new-d1"] }, { undo: ["d1"] }]);
    expect(seen.status.at(-1)).toBe("Nothing to undo.");
  });
});

describe("the playbook", () => {
  it("is opened by its command, which starts the server", async () => {
    const { run, server } = await looking();
    const before = server.starts.count;
    await run("playbook");
    expect(seen.commands.map(({ name }) => name)).toContain("daiku.playbook.focus");
    expect(server.starts.count).toBe(before + 1);
  });
});

// Commands: each asks the server for what it says, in the chat that is open, and tells what goes wrong in words.

import { beforeEach, describe, expect, it } from "vitest";
import type { ChangedFile, Plan } from "../../src/contract.gen";
import { editorOf, person, reset, seen, settle, Uri, window } from "../editor/editor";
import { ended, sessionOf, underWay } from "../lab/chat";
import { session as chunksOf, PLAN } from "../lab/chunks";
import { commandWorld } from "../lab/commands";

beforeEach(reset);

const coded = (code: number, message: string, data?: object) => Object.assign(new Error(message), { code, data });

describe("a command that fails", () => {
  const failing = (error: unknown) =>
    commandWorld({
      "daiku/grants/list": () => {
        throw error;
      },
    });

  it("says so in the server's words, and the log has the rest", async () => {
    const { run, calls } = failing(coded(-32803, "raw", { kind: "auth", message: "No key.", hint: "Set one." }));
    await run("grants");
    expect(seen.messages).toEqual(["No key. Set one."]);
    expect(calls.join()).toContain("daiku.grants");
  });

  it("says nothing where the person cancelled it", async () => {
    const { run, calls } = failing(coded(-32800, "cancelled"));
    await run("grants");
    expect([seen.messages, calls]).toEqual([[], []]);
  });
});

describe("the keys that answer a question", () => {
  const asking = async () => {
    const { answer, end } = underWay();
    const world = commandWorld({ "daiku/chat": answer, "daiku/approve": () => ({}) });
    const mine = world.chat.send("Mine", []);
    await settle();
    const other = world.chat.send("Other", [], { ownChat: true });
    await settle();
    const [one, two] = [chunksOf("s1", "r1"), chunksOf("s2", "r2")];
    world.server.streamInto(1, two("run_started", {}), two("approval_asked", { approvalId: "of the other" }));
    return { ...world, one, two, end, mine, other };
  };

  it("answer the oldest of the open chat for its run, and none of another chat", async () => {
    const { run, server, asked, one } = await asking();
    server.streamInto(0, one("run_started", {}));
    await settle();
    await run("approve");
    expect(asked("daiku/approve")).toEqual([]);
    server.streamInto(0, one("approval_asked", { approvalId: "a1" }), one("approval_asked", { approvalId: "a2" }));
    await settle();
    await run("approve");
    server.streamInto(0, one("approval_given", { approvalId: "a1" }));
    await run("reject");
    expect(asked("daiku/approve")).toEqual([
      { runId: "r1", approvalId: "a1", decision: "allow_once" },
      { runId: "r1", approvalId: "a2", decision: "reject_once" },
    ]);
  });

  it("answer those of the other chat once that is open", async () => {
    const { run, chat, asked, two } = await asking();
    await chat.open(two("delta", {}).session);
    await run("reject");
    expect(asked("daiku/approve")).toEqual([{ runId: "r2", approvalId: "of the other", decision: "reject_once" }]);
  });
});

describe("the chat", () => {
  it("that is opened shows what waits, else where to write", async () => {
    const { run, posted, calls } = commandWorld();
    await run("openChat");
    await run("history");
    expect(posted.filter(({ type }) => type === "focus")).toMatchObject([{ what: "composer" }, { what: "history" }]);
    expect(calls).toEqual(["reveal", "reveal"]);
  });

  it("that was interrupted is chosen from those that were, and goes on with its last run", async () => {
    const all = ["completed", "interrupted", "paused", "failed"] as const;
    const sessions = all.map((status) => ({ ...sessionOf(status), status, title: status }));
    const { run, kept, asked } = commandWorld({
      "daiku/session/list": () => ({ sessions }),
      "daiku/resume": () => ended("paused"),
    });
    kept.push(chunksOf("paused", "r7")("run_started", {}));
    await run("resume");
    expect(asked("daiku/resume")).toEqual([]);
    person.chooses = (labels) => labels.indexOf("paused");
    await run("resume");
    expect(seen.lists[0]).toEqual(["interrupted", "paused"]);
    expect(asked("daiku/resume")).toMatchObject([{ runId: "r7" }]);
  });

  it("is given the selection, else the file that is open, and nothing of what is no file", async () => {
    const { run, posted } = commandWorld();
    window.activeTextEditor = editorOf("a.py", "x = 1\n");
    await run("addToChat");
    const output = { ...editorOf("x", ""), document: { uri: Uri.parse("output:log"), isClosed: false } };
    window.activeTextEditor = output as unknown as typeof window.activeTextEditor;
    await run("addToChat");
    const attached = posted.flatMap((message) => (message.type === "attach" ? [message.attachment.label] : []));
    expect(attached).toEqual(["a.py"]);
  });

  it("is forked from a message that the person picks, with the files as they want them", async () => {
    const { run, chat, kept, asked } = commandWorld({ "daiku/session/fork": () => sessionOf("s2") });
    const say = chunksOf("s1");
    kept.push(say("run_started", { prompt: "First" }), say("message", { text: "Done." }), say("edit", {}));
    await chat.open("s1");
    person.chooses = (labels) => (labels.length > 0 ? 0 : undefined);
    await run("fork");
    expect(seen.lists[0]).toEqual(["$(tools) Done.", "$(account) First"]);
    expect(asked("daiku/session/fork")).toEqual([{ sessionId: "s1", atSeq: 2, restoreFiles: false }]);
    expect(chat.current).toBe("s2");
  });

  it("is deleted only where the person says so once more", async () => {
    const { run, chat, asked } = commandWorld({ "daiku/session/delete": () => ({}) });
    await chat.open("s1");
    await run("deleteSession", sessionOf("s1"));
    expect(asked("daiku/session/delete")).toEqual([]);
    person.picks = () => "Delete";
    await run("deleteSession", sessionOf("s1"));
    expect(asked("daiku/session/delete")).toEqual([{ sessionId: "s1" }]);
    expect(chat.current).toBeUndefined();
  });
});

describe("commands about code", () => {
  const execute = (asked: (method: string) => Record<string, unknown>[]) =>
    asked("workspace/executeCommand") as unknown as { command: string; arguments: Record<string, unknown>[] }[];

  it("are carried out by the server in the open chat, about the file that is open", async () => {
    const { run, chat, asked } = commandWorld({ "workspace/executeCommand": () => ended("s1") });
    await chat.open("s1");
    window.activeTextEditor = editorOf("a.py", "x = 1\n");
    await run("explain", Uri.file("/project/menu.py"));
    expect(execute(asked)).toMatchObject([
      { command: "daiku.explain", arguments: [{ uri: "file:///project/a.py", sessionId: "s1", model: "lab/one" }] },
    ]);
  });

  it("are made in a new chat where something is under way in the open one", async () => {
    const { answer } = underWay();
    const { run, chat, asked } = commandWorld({
      "daiku/chat": answer,
      "workspace/executeCommand": () => ended("s2"),
    });
    await chat.open("s1");
    void chat.send("Busy", []);
    await settle();
    await run("fix", { uri: "file:///project/a.py" });
    expect(execute(asked)[0]?.arguments[0]).not.toHaveProperty("sessionId");
    expect(chat.current).not.toBe("s1");
  });

  it("ask for words where none are handed over, and do nothing without any", async () => {
    const { run, asked } = commandWorld({ "workspace/executeCommand": () => ended("s1") });
    await run("plan");
    expect(execute(asked)).toEqual([]);
    person.writes = () => "  A shop  ";
    await run("plan");
    await run("research", "What is new?");
    expect(execute(asked).map((one) => [one.command, one.arguments[0]?.instruction])).toEqual([
      ["daiku.plan", "A shop"],
      ["daiku.research", "What is new?"],
    ]);
  });

  it("revise prose as the person says, and document code without a question", async () => {
    const { run, asked } = commandWorld({ "workspace/executeCommand": () => ended("s1") });
    window.activeTextEditor = editorOf("a.py", "x = 1\n");
    await run("document");
    window.activeTextEditor = editorOf("guide.md", "# A\n");
    await run("document");
    person.writes = (title) => (title === "Revise document" ? " Shorter, please. " : undefined);
    await run("document");
    await run("document", { uri: "file:///project/guide.md", instruction: "Clearer.", ask: true });
    await run("document", { uri: "file:///project/guide.md", instruction: "Clearer." });
    expect(execute(asked).map((one) => [one.arguments[0]?.uri, one.arguments[0]?.instruction])).toEqual([
      ["file:///project/a.py", undefined],
      ["file:///project/guide.md", "Shorter, please."],
      ["file:///project/guide.md", "Shorter, please."],
      ["file:///project/guide.md", "Clearer."],
    ]);
    expect(execute(asked).some((one) => "ask" in (one.arguments[0] ?? {}))).toBe(false);
  });

  it("hand over what failed last in a terminal, and say so where nothing did", async () => {
    const failure = { kind: "terminal" as const, text: "$ npm test\nfailed" };
    const { run, asked } = commandWorld({ "workspace/executeCommand": () => ended("s1") }, failure);
    await run("fixTerminal");
    expect(execute(asked)[0]?.arguments[0]?.context).toEqual([failure]);
    await commandWorld().run("fixTerminal");
    expect(seen.messages.at(-1)).toContain("No terminal command has failed");
  });
});

describe("commands about the plan", () => {
  const STEPS = ["one", "two", "three"].map((stepId) => ({ ...PLAN.steps[0], stepId, name: stepId }));
  const planned = async () => {
    const world = commandWorld({ "daiku/plan/update": () => ({}), "daiku/plan/run": () => ended("s1") });
    const plan = { ...PLAN, steps: STEPS } as Plan;
    world.kept.push(chunksOf("s1")("plan", { plan }));
    await world.chat.open("s1");
    const node = (n: number) => ({ kind: "step", plan, step: plan.steps[n], n: n + 1 });

    const names = () => {
      const steps = world.asked("daiku/plan/update").at(-1)?.steps as { name: string }[] | undefined;
      return steps?.map(({ name }) => name);
    };
    return { ...world, node, names };
  };

  it("move, remove and add steps where they are pointed at", async () => {
    const { run, node, names } = await planned();
    await run("plan.moveUp", node(2));
    expect(names()).toEqual(["one", "three", "two"]);
    await run("plan.remove", node(0));
    expect(names()).toEqual(["two", "three"]);
    person.writes = () => "new";
    await run("plan.addStep", node(0));
    expect(names()).toEqual(["one", "new", "two", "three"]);
  });

  it("start the whole plan, or the next step, in the open chat", async () => {
    const { run, asked } = await planned();
    await run("plan.start");
    await run("plan.runNext");
    expect(asked("daiku/plan/run")).toMatchObject([
      { planId: PLAN.planId, sessionId: "s1", approvals: "ask" },
      { planId: PLAN.planId, stepId: "one" },
    ]);
  });

  it("start nothing where there is no plan, or where something is under way", async () => {
    const { run, asked } = commandWorld();
    await run("plan.start");
    expect(seen.messages.at(-1)).toContain("no plan");
    const { answer } = underWay();
    const busy = commandWorld({ "daiku/chat": answer });
    void busy.chat.send("Busy", []);
    await settle();
    await busy.run("plan.start", { planId: "p1" });
    expect(seen.messages.at(-1)).toContain("already in progress");
    expect([asked("daiku/plan/run"), busy.asked("daiku/plan/run")]).toEqual([[], []]);
  });
});

describe("commands about changes", () => {
  const fileOf = (sessionId: string, path: string, ...lines: number[]): ChangedFile => ({
    ...{ sessionId, path, kind: "edit", added: 1, removed: 1, binary: false },
    hunks: lines.map((line) => ({
      ...{ hunkId: `${path}:${line}`, oldStart: line, oldLines: 1, newStart: line, newLines: 1, text: "-a\n+b\n" },
      ...{ state: "open" as const, touched: false },
    })),
  });
  const changed = async (...first: ChangedFile[]) => {
    let files = first;
    const world = commandWorld({
      "daiku/changes/list": () => ({ files }),
      "daiku/changes/decide": ({ sessionId, hunkIds }: { sessionId: string; hunkIds?: string[] }) => {
        const left = ({ hunks }: ChangedFile) => hunks.filter(({ hunkId }) => hunkIds && !hunkIds.includes(hunkId));
        files = files.map((file) => (file.sessionId === sessionId ? { ...file, hunks: left(file) } : file));
        files = files.filter(({ hunks }) => hunks.length > 0);
        return { files: [], checkpointId: `of ${sessionId}` };
      },
    });
    await world.changes.refresh();
    return world;
  };

  it("decide on the hunk that a link names, in the chat that made it", async () => {
    const { run, asked } = await changed(fileOf("s1", "a.py", 1), fileOf("s2", "a.py", 5));
    await run("rejectHunk", { sessionId: "s2", path: "a.py", hunkId: "a.py:5" });
    expect(asked("daiku/changes/decide")).toEqual([
      { sessionId: "s2", decision: "reject", path: "a.py", hunkIds: ["a.py:5"] },
    ]);
  });

  it("decide on the hunk that the cursor is in, and go on to the next one", async () => {
    const { run, asked } = await changed(fileOf("s1", "a.py", 2, 4));
    const editor = editorOf("a.py", "1\n2\n3\n4\n5\n");
    editor.selection = { active: { line: 1 }, start: { line: 1 }, end: { line: 1 } } as never;
    window.activeTextEditor = editor;
    await run("acceptHunk");
    expect(asked("daiku/changes/decide")).toMatchObject([{ decision: "accept", hunkIds: ["a.py:2"] }]);
    expect(editor.selection.start.line).toBe(3);
  });

  it("reject all of all chats, and bring all of it back when the person wants it", async () => {
    const { run, asked } = await changed(fileOf("s1", "a.py", 1), fileOf("s2", "b.py", 5));
    person.picks = (words) => (words.startsWith("Rejected") ? "Undo" : undefined);
    await run("rejectAll");
    await settle();
    expect(asked("daiku/checkpoint/restore").map(({ checkpointId }) => checkpointId)).toEqual(["of s2", "of s1"]);
  });

  it("say so where nothing waits", async () => {
    const { run, asked } = await changed();
    for (const name of ["acceptAll", "rejectAll", "acceptFile", "acceptHunk", "nextHunk", "openChanges"])
      await run(name);
    expect(asked("daiku/changes/decide")).toEqual([]);
    expect(seen.status).toHaveLength(6);
  });
});

describe("keys and grants", () => {
  it("are stored in the editor's secrets, and removed by an empty one", async () => {
    const { run, secrets } = commandWorld();
    person.chooses = (labels) => labels.indexOf("OpenAI");
    person.writes = () => " secret ";
    await run("setApiKey");
    expect(await secrets.get("daiku.apiKey.openai")).toBe("secret");
    person.writes = () => "";
    await run("setApiKey");
    expect(await secrets.get("daiku.apiKey.openai")).toBeUndefined();
  });
});

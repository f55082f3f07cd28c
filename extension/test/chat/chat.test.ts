// What the extension sends, keeps and shows, without a real editor: a small one stands in for it.

import { beforeEach, describe, expect, it } from "vitest";
import type * as vscode from "vscode";
import { type Chat, createChat } from "../../src/chat/chat";
import { handleRequests } from "../../src/chat/requests";
import type { Chunk, RunResult, Session } from "../../src/contract.gen";
import type { FromPanel, ToPanel } from "../../src/pure/chat/panel";
import { UserFacingError } from "../../src/server/rpc";
import { session as chunksOf } from "../lab/chunks";
import { memento, person, reset, seen, workspace } from "../lab/editor";
import { type Answers, serverOf } from "../lab/server";

const log = { info() {}, warn() {}, error() {} } as unknown as vscode.LogOutputChannel;
const sessionOf = (sessionId: string): Session => ({
  ...{ sessionId, title: "", createdAt: "", updatedAt: "", lastSeq: 0, status: "completed" as const },
});
const ended = (sessionId: string): RunResult => ({
  ...{ runId: "r1", sessionId, status: "completed" as const, text: "", lastSeq: 0, unattended: false },
  usage: { model: "", promptTokens: 0, completionTokens: 0, cachedTokens: 0 },
});

function world(answers: Answers = {}, approvals: "ask" | "edits" = "ask") {
  const posted: ToPanel[] = [];
  const kept: Chunk[] = [];
  const server = serverOf({
    "daiku/session/get": ({ sessionId }: { sessionId: string }) => ({
      session: sessionOf(sessionId),
      chunks: kept.filter((chunk) => chunk.session === sessionId),
    }),
    "daiku/checkpoint/restore": () => ({ files: [{ path: "a.py", kind: "edit" }], cannotUndo: [] }),
    ...answers,
  });
  const state = memento() as unknown as vscode.Memento;
  const chat = createChat({
    ...{ server, state, log, post: (message) => posted.push(message) },
    choice: () => ({ mode: "act", model: "lab/one", approvals }),
  });
  const panel = handleRequests({
    ...{ chat, server, log, openDiff: async () => undefined, setMode: () => undefined },
    post: (message) => posted.push(message),
    situation: () => ({ server: server.state, trusted: true, model: "", mode: "act", folder: true }),
  });
  return { server, chat, posted, kept, panel };
}

/** A request to the model that is under way until the test ends it. */
function underWay() {
  let end: (result: RunResult) => void = () => undefined;
  const answer = () => new Promise<RunResult>((resolve) => (end = resolve));
  return { answer, end: (session: string) => end(ended(session)) };
}

const breath = () => new Promise((resolve) => setTimeout(resolve, 5));

beforeEach(reset);

describe("a request to the server", () => {
  it.each([
    [true, "plan", "plan"],
    [true, "act", "act"],
    [false, "plan", "ask"],
    [false, "act", "ask"],
  ] as const)("in a workspace that is trusted: %s, with mode %s, is made in mode %s", async (trusted, mode, sent) => {
    workspace.isTrusted = trusted;
    const { chat, server } = world({ "daiku/chat": () => ended("s1") });
    await chat.send("Do it", [], { mode });
    expect(server.asked[0]?.params).toMatchObject({ text: "Do it", mode: sent });
  });

  it("is approved of as the person's settings say, also where it was made beside the open chat", async () => {
    for (const approvals of ["ask", "edits"] as const) {
      const { chat, server } = world({ "daiku/chat": () => ended("s1") }, approvals);
      await chat.send("Do it", []);
      await chat.send("Do it", [], { ownChat: true });
      expect(
        server.asked.filter(({ method }) => method === "daiku/chat").map(({ params }) => params.approvals),
      ).toEqual([approvals, approvals]);
    }
  });
});

describe("what a server streams", () => {
  it("is shown where it belongs to the open chat, and nowhere else", async () => {
    const { answer, end } = underWay();
    const { chat, server, posted } = world({ "daiku/chat": answer });
    const one = chunksOf("s1");
    const running = chat.send("One", []);
    await breath();
    server.stream(one("run_started", {}), one("message", { text: "Of the first" }));
    await breath();
    chat.newChat();
    posted.length = 0;
    server.stream(one("message", { text: "Of the first, later" }));
    await breath();
    expect(posted.filter(({ type }) => type === "chunks")).toEqual([]);
    end("s1");
    await running;
    expect(posted.filter(({ type }) => type === "chunks")).toEqual([]);
    await chat.open("s1");
    expect(chat.current).toBe("s1");
  });

  it("of a request made aside leaves the open chat alone, and says when it asks something", async () => {
    const { answer, end } = underWay();
    const { chat, server, posted } = world({ "daiku/chat": answer });
    const elsewhere: string[] = [];
    chat.onAskedElsewhere((session) => elsewhere.push(session));
    const running = chat.send("Aside", [], { ownChat: true });
    await breath();
    expect(chat.working).toBe(false);
    const one = chunksOf("s9");
    server.stream(one("run_started", {}), one("approval_asked", { approvalId: "a1" }));
    await breath();
    expect([chat.current, chat.waiting.length, elsewhere]).toEqual([undefined, 0, ["s9"]]);
    expect(posted.filter(({ type }) => type === "chunks" || type === "session")).toEqual([]);
    await chat.open("s9");
    expect([chat.working, chat.waiting.length]).toEqual([true, 1]);
    end("s9");
    await running;
  });
});

describe("what arrives while the person turns to another chat", () => {
  it("is not shown there", async () => {
    const { answer, end } = underWay();
    const { chat, server, posted } = world({ "daiku/chat": answer });
    const [one, two] = [chunksOf("s1"), chunksOf("s2", "r2")];
    const first = chat.send("One", []);
    await breath();
    server.stream(one("run_started", {}));
    const second = chat.send("Two", [], { ownChat: true });
    await breath();
    server.stream(two("run_started", {}));
    await breath();
    posted.length = 0;
    server.stream(one("message", { text: "Of the first" }));
    void chat.open("s2");
    await breath();
    const shown = posted.flatMap((message) => (message.type === "chunks" ? message.chunks : []));
    expect(shown.filter(({ session }) => session === "s1")).toEqual([]);
    expect(chat.current).toBe("s2");
    end("s2");
    void [first, second];
  });
});

describe("a chat that is opened by its end", () => {
  const say = chunksOf("s1");
  const whole = [say("run_started", {}), say("edit", { checkpointId: "c1" }), say("run_started", {}, { run: "r2" })];
  const windowed = () => {
    const answer = { release: () => {} };
    const made = world({
      "daiku/session/get": async ({ beforeSeq }: { beforeSeq?: number }) => {
        const session = { ...sessionOf("s1"), lastSeq: 3 };
        const usage = { model: "", promptTokens: 0, completionTokens: 0, cachedTokens: 0 };
        if (!beforeSeq) return { session, chunks: whole.slice(2), earlier: { beforeSeq: 3, count: 2, usage } };
        await new Promise<void>((resolve) => (answer.release = resolve));
        return { session, chunks: whole.slice(0, 2) };
      },
    });
    return { ...made, answer };
  };

  it("tells the trees and keys of its older part when that has come, asked for once", async () => {
    const { chat, answer, posted, server } = windowed();
    await chat.open("s1");
    const heard: (readonly Chunk[])[] = [];
    chat.onChunks((chunks) => heard.push(chunks));
    const asking = [chat.earlier(), chat.earlier()];
    await breath();
    answer.release();
    await Promise.all(asking);
    expect(heard).toEqual([whole]);
    expect(posted.at(-1)).toMatchObject({ type: "earlier", chunks: whole.slice(0, 2) });
    expect(server.asked.filter(({ params }) => params.beforeSeq)).toHaveLength(1);
  });

  it("leaves out an older part that comes after the chat was fetched anew, or left", async () => {
    const { chat, answer, posted } = windowed();
    for (const meanwhile of [() => chat.open("s1"), async () => chat.newChat()]) {
      await chat.open("s1");
      const asking = chat.earlier();
      await breath();
      await meanwhile();
      answer.release();
      await asking;
      expect(posted.filter(({ type }) => type === "earlier")).toEqual([]);
    }
  });
});

describe("a question of a run that is not under way here", () => {
  it.each([
    [
      "an approval",
      "daiku/approve",
      (chat: Chat) => chat.approve({ runId: "r1", approvalId: "a1", decision: "allow_once" }),
    ],
    ["a question", "daiku/answer", (chat: Chat) => chat.answer("r1", "i1", "yes")],
  ] as const)("%s is seen to be answered", async (_, method, answer) => {
    const say = chunksOf("s1");
    const { chat, kept, posted } = world({
      [method]: () => {
        kept.push(say("approval_given", { approvalId: "a1", decision: "allow_once" }));
        return {};
      },
    });
    kept.push(say("run_started", {}), say("approval_asked", { approvalId: "a1" }));
    await chat.open("s1");
    posted.length = 0;
    await answer(chat);
    await breath();
    expect(posted.flatMap((message) => (message.type === "chunks" ? message.chunks : []))).toMatchObject([
      { type: "approval_given" },
    ]);
  });
});

describe("undoing", () => {
  const story = () => {
    const say = chunksOf("s1");
    const edit = (checkpointId: string, path: string) =>
      say("edit", { checkpointId, files: [{ path, kind: "edit", added: 1, removed: 1 }] });
    return { say, edit };
  };
  const opened = async (chunks: Chunk[]) => {
    const all = world();
    all.kept.push(...chunks);
    await all.chat.open("s1");
    return all;
  };
  const restores = ({ server }: ReturnType<typeof world>) =>
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
      await breath();
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
    await breath();
    expect([seen.messages, restores(all)]).toEqual([[], ["c1"]]);
    expect(seen.status.at(-1)).toContain("1 file is as it was before.");
  });

  it("and bringing back say of the files what is true of them", async () => {
    const { say, edit } = story();
    const undone = say("restored", { checkpointId: "c1", redo: "k1", files: [] });
    const all = await opened([say("run_started", {}), edit("c1", "a.py"), undone]);
    all.panel({ type: "undo", checkpointId: "k1" });
    await breath();
    expect(seen.status.at(-1)).toContain("Daiku's change is back in 1 file.");
  });
});

describe("a request made once more", () => {
  const say = chunksOf("s1");
  const pointed = [{ kind: "file" as const, uri: "file:///project/a.py" }];
  const start = say("run_started", { prompt: "Do it", mode: "plan", context: pointed });
  const chunks = [start, say("run_finished", { status: "failed" } as never)];

  it("is the same request, with what was pointed at and in its mode", async () => {
    const { chat, kept, panel, server } = world({ "daiku/chat": () => ended("s1") });
    kept.push(...chunks);
    await chat.open("s1");
    panel({ type: "retry", run: "r1" });
    await breath();
    const { params } = server.asked.find(({ method }) => method === "daiku/chat") ?? {};
    expect(params).toMatchObject({ text: "Do it", mode: "plan", context: pointed, sessionId: "s1" });
  });

  it("to be said otherwise begins a new chat before it, and puts the words into the composer", async () => {
    const { chat, kept, panel, posted, server } = world({ "daiku/session/fork": () => sessionOf("s2") });
    kept.push(...chunks);
    await chat.open("s1");
    panel({ type: "rephrase", run: "r1" });
    await breath();
    const fork = server.asked.find(({ method }) => method === "daiku/session/fork");
    expect(fork?.params).toEqual({ sessionId: "s1", atSeq: start.seq - 1, restoreFiles: false });
    expect(chat.current).toBe("s2");
    expect(posted.at(-1)).toMatchObject({ type: "prefill", text: "Do it", attachments: [{ label: "a.py" }] });
  });
});

describe("what goes wrong between the editor and the server", () => {
  const coded = (code: number, message: string) => Object.assign(new Error(message), { code });
  const errors: [string, unknown][] = [
    ["a crash with a request under way", coded(-32097, "Pending response rejected since connection got disposed")],
    ["a pipe that cannot be written", coded(-32099, "write EPIPE")],
    ["a closed connection", coded(1, "Connection is closed.")],
    ["a disposed connection", coded(2, "Connection is disposed.")],
    ["a client that does not run", new Error("Client is not running and can't be stopped.")],
    ["a fault of the server", coded(-32603, "OperationalError")],
    ["a fault of ours", new TypeError("Cannot read properties of undefined (reading 'x')")],
    ["a program that is missing", Object.assign(new Error("spawn daiku ENOENT"), { code: "ENOENT" })],
    ["no error at all", "boom"],
  ];

  it.each(errors)("is told in our words: %s", async (_, error) => {
    const { panel, posted } = world({
      "daiku/session/list": () => {
        throw error;
      },
    });
    panel({ type: "sessions", query: "" });
    await breath();
    const failed = posted.find((message) => message.type === "failed");
    expect(["Something unexpected went wrong.", "The server stopped before it answered."]).toContain(failed?.message);
    expect(failed?.hint).not.toBe("");
  });

  it("is told in the words that were meant for the person, also where another bundle chose them", async () => {
    const foreign = Object.assign(new Error("There is no Python."), { userFacing: true, hint: "Install one." });
    for (const error of [new UserFacingError("There is no Python.", "Install one."), foreign]) {
      const { panel, posted } = world({
        "daiku/session/list": () => {
          throw error;
        },
      });
      panel({ type: "sessions", query: "" });
      await breath();
      expect(posted.find(({ type }) => type === "failed")).toMatchObject({
        ...{ message: "There is no Python.", hint: "Install one." },
      });
    }
  });

  it("is told in the server's words where it has some", async () => {
    const data = { kind: "auth", message: "OpenAI refused the key.", hint: "Set another." };
    const { panel, posted } = world({
      "daiku/session/list": () => {
        throw Object.assign(coded(-32803, "x"), { data });
      },
    });
    panel({ type: "sessions", query: "" });
    await breath();
    expect(posted.find(({ type }) => type === "failed")).toMatchObject(data);
  });
});

describe("links in an answer", () => {
  it.each([
    ["https://example.org/a", true],
    ["HTTP://example.org", true],
    ["mailto:someone@example.org", true],
    ["file:///etc/passwd", false],
    ["command:workbench.action.terminal.new", false],
    ["vscode://some.extension/do", false],
    ["javascript:alert(1)", false],
    [" https://example.org", false],
    ["data:text/html,x", false],
  ])("%s is opened: %s", async (href, opened) => {
    world().panel({ type: "openLink", href });
    await breath();
    expect(seen.opened).toHaveLength(opened ? 1 : 0);
  });

  it("run no command but those of the panel", async () => {
    for (const command of ["workbench.action.terminal.new", "daiku.approve"])
      world().panel({ type: "command", command } as unknown as FromPanel);
    world().panel({ type: "command", command: "daiku.redo" });
    await breath();
    expect(seen.commands.map(({ name }) => name)).toEqual(["daiku.redo"]);
  });
});

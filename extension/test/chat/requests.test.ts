// What the panel asks for is done or said, and nothing else than it may ask for.

import { beforeEach, describe, expect, it } from "vitest";
import type { FromPanel } from "../../src/pure/chat/panel";
import { UserFacingError } from "../../src/server/rpc";
import { editorOf, files, reset, seen, settle, window } from "../editor/editor";
import { chatWorld, ended, sessionOf, underWay } from "../lab/chat";
import { session as chunksOf } from "../lab/chunks";

beforeEach(reset);

describe("a request made once more", () => {
  const say = chunksOf("s1");
  const pointed = [{ kind: "file" as const, uri: "file:///project/a.py" }];
  const start = say("run_started", { prompt: "Do it", mode: "plan", context: pointed });
  const chunks = [start, say("run_finished", { status: "failed" } as never)];

  it("is the same request, with what was pointed at and in its mode", async () => {
    const { chat, kept, panel, server } = chatWorld({ "daiku/chat": () => ended("s1") });
    kept.push(...chunks);
    await chat.open("s1");
    panel({ type: "retry", run: "r1" });
    await settle();
    const { params } = server.asked.find(({ method }) => method === "daiku/chat") ?? {};
    expect(params).toMatchObject({ text: "Do it", mode: "plan", context: pointed, sessionId: "s1" });
  });

  it("to be said otherwise begins a new chat before it, and puts the words into the composer", async () => {
    const { chat, kept, panel, posted, server } = chatWorld({ "daiku/session/fork": () => sessionOf("s2") });
    kept.push(...chunks);
    await chat.open("s1");
    panel({ type: "rephrase", run: "r1" });
    await settle();
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
    const { panel, posted } = chatWorld({
      "daiku/session/list": () => {
        throw error;
      },
    });
    panel({ type: "sessions", query: "" });
    await settle();
    const failed = posted.find((message) => message.type === "failed");
    expect(["An unexpected error occurred.", "The server stopped before it responded."]).toContain(failed?.message);
    expect(failed?.hint).not.toBe("");
  });

  it("is told in the words that were meant for the person, also where another bundle chose them", async () => {
    const foreign = Object.assign(new Error("There is no Python."), { userFacing: true, hint: "Install one." });
    for (const error of [new UserFacingError("There is no Python.", "Install one."), foreign]) {
      const { panel, posted } = chatWorld({
        "daiku/session/list": () => {
          throw error;
        },
      });
      panel({ type: "sessions", query: "" });
      await settle();
      expect(posted.find(({ type }) => type === "failed")).toMatchObject({
        ...{ message: "There is no Python.", hint: "Install one." },
      });
    }
  });

  it("is told in the server's words where it has some", async () => {
    const data = { kind: "auth", message: "OpenAI refused the key.", hint: "Set another." };
    const { panel, posted } = chatWorld({
      "daiku/session/list": () => {
        throw Object.assign(coded(-32803, "x"), { data });
      },
    });
    panel({ type: "sessions", query: "" });
    await settle();
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
    chatWorld().panel({ type: "openLink", href });
    await settle();
    expect(seen.opened).toHaveLength(opened ? 1 : 0);
  });

  it("show a lesson in the playbook", async () => {
    chatWorld().panel({ type: "openLesson", id: "com-00001" });
    await settle();
    expect(seen.commands.at(-1)).toEqual({ name: "daiku.playbook.show", args: ["com-00001"] });
  });

  it("run no command but those of the panel", async () => {
    for (const command of ["workbench.action.terminal.new", "daiku.approve"])
      chatWorld().panel({ type: "command", command } as unknown as FromPanel);
    chatWorld().panel({ type: "command", command: "daiku.redo" });
    await settle();
    expect(seen.commands.map(({ name }) => name)).toEqual(["daiku.redo"]);
  });
});

describe("files in an answer", () => {
  it.each([
    ["a.py", "/project/a.py"],
    ["src/../a.py", "/project/a.py"],
    ["/project/src/a.py", "/project/src/a.py"],
    ["../secret.txt", undefined],
    ["src/../../secret.txt", undefined],
    ["..\\secret.txt", undefined],
    ["..", undefined],
    ["/etc/passwd", undefined],
    ["/project/../etc/passwd", undefined],
    ["C:\\secret.txt", undefined],
  ])("%s opens %s: only what lies in the workspace", async (path, opened) => {
    chatWorld().panel({ type: "openFile", path });
    await settle();
    expect(seen.opened).toEqual(opened ? [`file://${opened}`] : []);
    expect(seen.status).toHaveLength(opened ? 0 : 1);
  });

  it("that are not there are said to be missing", async () => {
    files.add("/project/b.py");
    chatWorld().panel({ type: "openFile", path: "a.py" });
    await settle();
    expect([seen.opened, seen.status]).toEqual([[], ["File not found in this workspace: a.py"]]);
  });
});

describe("a message of the panel", () => {
  it.each(["toString", "__proto__", "evaluate"])("that nothing is for is left alone: %s", async (type) => {
    const { panel, posted, server } = chatWorld();
    panel({ type } as unknown as FromPanel);
    await settle();
    expect([posted, server.asked]).toEqual([[], []]);
  });

  it("that answers a question carries what was decided, word for word", async () => {
    const { panel, server } = chatWorld({ "daiku/approve": () => ({}), "daiku/answer": () => ({}) });
    panel({ type: "approve", run: "r1", approvalId: "a1", decision: "allow_once", hunks: [0, 2] });
    panel({ type: "approve", run: "r2", approvalId: "a2", decision: "reject_once", feedback: "no" });
    panel({ type: "answer", run: "r3", inputId: "i1", text: "yes" });
    await settle();
    expect(server.asked.map(({ params }) => params)).toEqual([
      { runId: "r1", approvalId: "a1", decision: "allow_once", hunks: [0, 2] },
      { runId: "r2", approvalId: "a2", decision: "reject_once", feedback: "no" },
      { runId: "r3", inputId: "i1", text: "yes" },
    ]);
  });

  it("that makes a request once more does nothing while something is under way", async () => {
    const { answer } = underWay();
    const { chat, kept, panel, server } = chatWorld({ "daiku/chat": answer });
    kept.push(chunksOf("s1")("run_started", { prompt: "Do it" }));
    await chat.open("s1");
    void chat.send("Other", []);
    await settle();
    panel({ type: "retry", run: "r1" });
    await settle();
    expect(server.methods().filter((method) => method === "daiku/chat")).toHaveLength(1);
  });

  it("that copies or points is answered by the editor alone", async () => {
    const { panel, posted, server } = chatWorld();
    panel({ type: "copy", text: "x = 1" });
    window.activeTextEditor = editorOf("a.py", "x");
    panel({ type: "candidates", query: "a" });
    await settle();
    expect(seen.copied).toEqual(["x = 1"]);
    expect(posted).toMatchObject([{ type: "candidates", query: "a", candidates: [{ label: "a.py" }] }]);
    expect(server.asked).toEqual([]);
  });
});

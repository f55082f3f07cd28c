import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import * as vscode from "vscode";
import { chunks, configure, daiku, decide, inWorkspace, play, textOf, until } from "./lab";

const call = (tool: string, args: object) => ({ tool, args });

describe("a chat", () => {
  beforeEach(async () => {
    const app = await daiku();
    if (app.chat.working) await app.chat.stop();
    app.chat.newChat();
  });

  it("edits a file through the editor once that is allowed, and can be undone", async () => {
    const app = await daiku();
    writeFileSync(inWorkspace("note.txt"), "one\ntwo\n");
    const document = await vscode.workspace.openTextDocument(inWorkspace("note.txt"));
    await vscode.window.showTextDocument(document);
    const version = document.version;
    await play(
      {
        text: "I change it.",
        calls: [call("files/edit", { path: "note.txt", edits: [{ search: "two", replace: "2" }] })],
      },
      { text: "It is done." },
    );
    const running = app.chat.send("Change the note", []);
    await decide(app, "allow_once");
    const result = await running;
    assert.equal(result?.status, "completed");
    assert.equal(document.getText(), "one\n2\n");
    assert.ok(document.version > version, "the edit did not go through the editor");
    await until("the file to be saved", () => textOf("note.txt") === "one\n2\n");

    await vscode.commands.executeCommand("daiku.undo");
    await until("the file to be as it was", () => textOf("note.txt") === "one\ntwo\n");
    assert.equal(document.getText(), "one\ntwo\n");
  });

  it("keeps what the person has not saved", async () => {
    const app = await daiku();
    writeFileSync(inWorkspace("draft.txt"), "a\nb\n");
    const document = await vscode.workspace.openTextDocument(inWorkspace("draft.txt"));
    const editor = await vscode.window.showTextDocument(document);
    await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "unsaved\n"));
    await play(
      { calls: [call("files/edit", { path: "draft.txt", edits: [{ search: "b", replace: "B" }] })] },
      { text: "ok" },
    );
    const running = app.chat.send("Change the draft", []);
    await decide(app, "allow_once");
    await running;
    assert.equal(document.getText(), "unsaved\na\nB\n");
    await vscode.commands.executeCommand("workbench.action.files.revert");
  });

  it("changes nothing when it is rejected, and goes on", async () => {
    const app = await daiku();
    await play({ calls: [call("files/write", { path: "never.txt", content: "x" })] }, { text: "Then not." });
    const running = app.chat.send("Write it", []);
    await decide(app, "reject_once");
    const result = await running;
    assert.equal(result?.status, "completed");
    assert.equal(existsSync(inWorkspace("never.txt")), false);
    assert.ok(chunks(app).some((chunk) => chunk.type === "tool_response" && !chunk.data.ok));
  });

  it("runs a command and hears what it said", async () => {
    const app = await daiku();
    await play({ calls: [call("shell/run", { command: "echo daiku-was-here" })] }, { text: "ok" });
    const running = app.chat.send("Run it", []);
    const asked = await Promise.race([until("a question", () => app.chat.waiting[0]), running]);
    if (asked && "approvalId" in asked) await decide(app, "allow_once");
    await running;
    const response = chunks(app).find((chunk) => chunk.type === "tool_response");
    assert.match(response?.type === "tool_response" ? response.data.result : "", /daiku-was-here/);
  });

  it("stops when it is told to", async () => {
    const app = await daiku();
    await play({ text: "word ".repeat(500), delay_ms: 20 });
    const running = app.chat.send("Talk", []);
    await until("the first words", () => chunks(app).some((chunk) => chunk.type === "delta"));
    const start = Date.now();
    await app.chat.stop();
    assert.equal((await running)?.status, "cancelled");
    assert.ok(Date.now() - start < 3000);
  });

  it("is not cut off by changed settings while another chat is open", async () => {
    const app = await daiku();
    await play({ text: "word ".repeat(40), delay_ms: 30 });
    const running = app.chat.send("Talk", []);
    await until("the first words", () => chunks(app).some((chunk) => chunk.type === "delta"));
    app.chat.newChat();
    const former = app.server.running();
    const config = vscode.workspace.getConfiguration("daiku");
    try {
      await config.update("limits.maxRounds", 17, vscode.ConfigurationTarget.Global);
      assert.equal((await running)?.status, "completed");
      await until("the restart", () => app.server.running() !== former && app.server.running());
    } finally {
      await configure({ "limits.maxRounds": undefined });
    }
  });

  it("is numbered without gaps, and is the same when it is fetched again", async () => {
    const app = await daiku();
    await play({ text: "First one, then two.", calls: [call("files/list", {})] }, { text: "Ready." });
    await app.chat.send("List", []);
    const durable = (list: readonly { type: string; seq: number }[]) =>
      list
        .filter(({ type }) => !["delta", "thinking", "tool_output"].includes(type))
        .map(({ type, seq }) => `${seq} ${type}`);
    const before = durable(chunks(app));
    await app.chat.reload();
    assert.deepEqual(durable(chunks(app)), before);
    assert.equal(before[0], "1 run_started");
    assert.match(before.at(-1) ?? "", /run_finished$/);
  });

  it("takes along what the person points at", async () => {
    const app = await daiku();
    await play({ text: "I see {{user}}" });
    const uri = vscode.Uri.file(inWorkspace("note.txt")).toString();
    await app.chat.send("Look", [{ kind: "file", uri }]);
    const started = chunks(app).find((chunk) => chunk.type === "run_started");
    assert.deepEqual(started?.type === "run_started" && started.data.context.map((one) => one.uri), [uri]);
  });

  it("says what is wrong when no model can be used, and loses nothing", async () => {
    const app = await daiku();
    const config = vscode.workspace.getConfiguration("daiku");
    const former = app.server.running();
    await config.update("llm.model", "scripted/there-is-none.jsonl", vscode.ConfigurationTarget.Global);
    await until("a restart", () => app.server.running() !== former && app.server.running());
    const result = await app.chat.send("Hello?", []);
    const said = JSON.stringify(chunks(app)) + JSON.stringify(result ?? "");
    if (result) assert.equal(result.status, "failed");
    if (result) assert.match(said, /there-is-none/);
    assert.equal(app.chat.working, false);
  });

  it("lists former chats and opens one", async () => {
    const app = await daiku();
    const sessions = await app.chat.list("");
    assert.ok(sessions.length >= 5);
    const found = await app.chat.list("note");
    assert.ok(found.length < sessions.length && found.length > 0);
    const [first] = found;
    assert.ok(first);
    await app.chat.open(first.sessionId);
    assert.equal(app.chat.current, first.sessionId);
    assert.ok(chunks(app).length > 0);
  });
});

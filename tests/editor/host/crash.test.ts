import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { lastRun } from "../../../extension/src/pure/chat/conversation";
import { chunks, configure, daiku, decide, inWorkspace, play, until } from "./lab";

describe("a server that is killed in the middle of a run", () => {
  it("comes back, shows the run as interrupted, and goes on with it where it was", async () => {
    const app = await daiku();
    app.chat.newChat();
    await play(
      { text: "First I write.", calls: [{ tool: "files/write", args: { path: "kept.txt", content: "kept\n" } }] },
      { text: "Now I talk. ".repeat(40), delay_ms: 15 },
    );
    const running = app.chat.send("Write, then talk", []);
    await decide(app, "allow_once");
    await until(
      "the second reply",
      () =>
        chunks(app)
          .filter((chunk) => chunk.type === "delta")
          .at(-1) && existsSync(inWorkspace("kept.txt")),
    );
    await until("a delta after the edit", () => chunks(app).at(-1)?.type === "delta");
    const run = lastRun(app.chat.chunks);
    assert.ok(run);
    const former = app.server.running();
    process.kill(app.server.pid ?? 0, "SIGKILL");
    assert.equal(await running, undefined);
    await until("another server", () => app.server.running() !== former && app.server.running());
    await app.chat.reload();
    const shown = app.chat.snapshot();
    assert.ok(shown.type === "session" && shown.session?.status === "interrupted", JSON.stringify(shown).slice(0, 300));

    await app.chat.resume(run);
    const types = chunks(app).map((chunk) => chunk.type);
    assert.equal(types.filter((type) => type === "run_started").length, 1);
    assert.equal(types.filter((type) => type === "run_finished").length, 1);
    assert.equal(types.filter((type) => type === "edit").length, 1, "the edit was made twice");
    const finished = chunks(app).at(-1);
    assert.ok(finished?.type === "run_finished" && finished.data.status === "completed", JSON.stringify(finished));
  });
});

describe("the editor's own models", () => {
  it("are asked for through the editor; where it has none, that is said with what to do", async () => {
    const app = await daiku();
    app.chat.newChat();
    await configure({ "llm.provider": "editor", "llm.model": "editor/lab/none" });
    await app.chat.send("Hello", []);
    const error = chunks(app).find((chunk) => chunk.type === "error");
    assert.ok(error?.type === "error", JSON.stringify(chunks(app)));
    assert.match(error.data.message, /model/i);
    assert.notEqual(error.data.hint, "");
  });
});

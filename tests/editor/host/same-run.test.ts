// The run of tests/fixtures/editors in VS Code; tests/lsp/test_same_run.py has Neovim do the same.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as vscode from "vscode";
import type { Chunk } from "../../../extension/src/contract.gen";
import { chunks, configure, daiku, inWorkspace, textOf, until } from "./lab";

const SHARED = path.join(process.env.DAIKU_LAB_FIXTURES ?? "", "editors");

interface Asked {
  command: string;
  text: string;
}

interface Shared {
  file: string;
  before: string;
  problem: { range: { start: Place; end: Place }; message: string };
  command: Asked;
  cancelled: Asked;
  expected: object;
}

type Place = { line: number; character: number };
type Kind = "begin" | "report" | "end";

/** What each run was given, did and came to, in the words of `run.json`. */
function runsOf(all: readonly Chunk[]) {
  const runs: { status?: string; text?: string; context: string[]; calls: string[]; answered: boolean[] }[] = [];
  for (const { type, data } of all) {
    const run = runs.at(-1);
    if (type === "run_started") runs.push({ context: data.context.map((one) => one.kind), calls: [], answered: [] });
    else if (type === "tool_call") run?.calls.push(`${data.tool} ${data.args.command ?? data.args.path ?? ""}`);
    else if (type === "tool_response") run?.answered.push(data.ok);
    else if (type === "run_finished" && run) {
      run.status = data.status;
      run.text = data.status === "completed" ? data.text : "";
    }
  }
  return runs;
}

describe("one scripted run", () => {
  const problems = vscode.languages.createDiagnosticCollection("same-run");
  after(() => problems.dispose());

  it("has in VS Code what it has in any editor: actions, an edit, a command, progress, an end", async () => {
    const run = JSON.parse(readFileSync(path.join(SHARED, "run.json"), "utf8")) as Shared;
    const app = await daiku();
    if (app.chat.working) await app.chat.stop();
    app.chat.newChat();
    await configure({ "llm.provider": "scripted", "llm.model": `scripted/${path.join(SHARED, "script.jsonl")}` });
    const client = await app.server.client();
    const bars = new Map<string, Kind[]>();
    client.middleware.handleWorkDoneProgress = (token, params, next) => {
      bars.set(String(token), [...(bars.get(String(token)) ?? []), params.kind]);
      next(token, params);
    };

    writeFileSync(inWorkspace(run.file), run.before);
    const document = await vscode.workspace.openTextDocument(inWorkspace(run.file));
    await vscode.window.showTextDocument(document);
    const { start, end } = run.problem.range;
    const place = new vscode.Range(start.line, start.character, end.line, end.character);
    problems.set(document.uri, [new vscode.Diagnostic(place, run.problem.message)]);

    const quickFixes = () =>
      vscode.commands.executeCommand<vscode.CodeAction[]>(
        "vscode.executeCodeActionProvider",
        document.uri,
        place,
        vscode.CodeActionKind.QuickFix.value,
        5,
      );
    const ours = await until("the quick fix", async () => {
      const found = (await quickFixes()).filter((one) => one.title.includes("Daiku"));
      return found.length ? found : undefined;
    });
    const fix = ours?.[0]?.command;
    assert.ok(fix);
    const fixing = vscode.commands.executeCommand(fix.command, ...(fix.arguments ?? []));
    const asked = await until("the question", () => app.chat.waiting[0]);
    assert.ok(asked);
    const question = chunks(app).find((chunk) => chunk.type === "approval_asked");
    await app.chat.approve({ runId: asked.runId, approvalId: asked.approvalId, decision: "allow_once" });
    await fixing;
    await until("the file to be saved", () => textOf(run.file) !== run.before);

    const running = vscode.commands.executeCommand(run.command.command, { text: run.command.text });
    const allowing = until("the question or the end", async () => {
      const [waiting] = app.chat.waiting;
      const { runId = "", approvalId = "" } = waiting ?? {};
      if (waiting) await app.chat.approve({ runId, approvalId, decision: "allow_once" });
      return waiting !== undefined || runsOf(chunks(app))[1]?.status !== undefined;
    });
    await Promise.all([running, allowing]);

    const before = new Set(bars.keys());
    const long = vscode.commands.executeCommand(run.cancelled.command, { text: run.cancelled.text });
    await until("the first words", () => chunks(app).at(-1)?.type === "delta");
    const bar = [...bars.keys()].find((token) => !before.has(token));
    assert.ok(bar, "no progress is shown");
    await client.sendNotification("window/workDoneProgress/cancel", { token: bar });
    await long;

    await until("the ends of the progress", () => [...bars.values()].every((kinds) => kinds.at(-1) === "end"));
    const kinds = [...bars.values()];
    assert.deepEqual(
      {
        actions: ours?.map((one) => one.title),
        after: textOf(run.file),
        edit_asked: question?.type === "approval_asked" && JSON.stringify(question.data).includes(run.file),
        progress_begun: kinds.length > 0 && kinds.every((seen) => seen[0] === "begin"),
        progress_ended: kinds.every((seen) => seen.at(-1) === "end"),
        runs: runsOf(chunks(app)),
      },
      run.expected,
    );
  });
});

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import * as vscode from "vscode";
import { selectionAttachment } from "../../../extension/src/editor/context";
import { chunks, configure, daiku, inWorkspace, play, textOf, until } from "./lab";

const call = (tool: string, args: object) => ({ tool, args });
const edit = (path: string, search: string, replace: string) =>
  call("files/edit", { path, edits: [{ search, replace }] });

/** What the model was told by each call. */
async function told(...calls: object[]): Promise<string[]> {
  const app = await daiku();
  if (app.chat.working) await app.chat.stop();
  app.chat.newChat();
  await play({ text: "I do it.", calls }, { text: "Done." });
  const result = await app.chat.send("go", []);
  assert.equal(result?.status, "completed");
  return chunks(app).flatMap((chunk) => (chunk.type === "tool_response" ? [chunk.data.result] : []));
}

const word = (words: string, text: string) => assert.ok(text.includes(words), text);

const autoSave = (value?: string) =>
  vscode.workspace.getConfiguration("files").update("autoSave", value, vscode.ConfigurationTarget.Global);

describe("an edit", () => {
  const subscriptions: vscode.Disposable[] = [];
  before(() => configure({ "approvals.edit": "allow" }));
  after(async () => {
    await autoSave();
    await configure({ "approvals.edit": undefined });
    for (const one of subscriptions) one.dispose();
  });

  /** A language server in small: every line with BAD has a problem, a moment after it was typed. */
  function lint(name: RegExp): void {
    const problems = vscode.languages.createDiagnosticCollection(`lint ${name}`);
    const look = (document: vscode.TextDocument) => {
      if (!name.test(document.uri.path)) return;
      setTimeout(() => {
        const lines = document.getText().split("\n");
        const found = lines.flatMap((line, at) => (line.includes("BAD") ? [new vscode.Range(at, 0, at, 3)] : []));
        problems.set(
          document.uri,
          found.map((range) => new vscode.Diagnostic(range, `bad: ${document.lineAt(range.start).text}`)),
        );
      }, 150);
    };
    subscriptions.push(
      problems,
      vscode.workspace.onDidOpenTextDocument(look),
      vscode.workspace.onDidChangeTextDocument(({ document }) => look(document)),
    );
  }

  it("of a file that nobody has open tells the problems that it made, and no others", async () => {
    lint(/\.lint$/);
    writeFileSync(inWorkspace("a.lint"), "one\nBAD before\ntwo\n");
    const [moved, worse, mended] = await told(
      edit("a.lint", "one", "zero\none"),
      edit("a.lint", "two", "BAD after"),
      edit("a.lint", "BAD before\nBAD after", "good"),
    );
    assert.ok(!moved?.includes("roblems in the editor"), moved);
    word("New problems in the editor since this edit (1 error):\na.lint:4:1 error: bad: BAD after", worse ?? "");
    word("Problems in the editor: 2 fixed, none new.", mended ?? "");
    assert.equal(textOf("a.lint"), "zero\none\ngood\n");
  });

  it("is formatted on saving, and what stands there then is told, shown and undone", async () => {
    const app = await daiku();
    subscriptions.push(
      vscode.languages.registerDocumentFormattingEditProvider(
        { pattern: "**/*.shout" },
        {
          provideDocumentFormattingEdits: (document) => {
            const text = document.getText();
            const all = new vscode.Range(document.positionAt(0), document.positionAt(text.length));
            return [vscode.TextEdit.replace(all, text.toUpperCase())];
          },
        },
      ),
    );
    const config = vscode.workspace.getConfiguration("editor");
    await config.update("formatOnSave", true, vscode.ConfigurationTarget.Global);
    try {
      writeFileSync(inWorkspace("b.shout"), "one\ntwo\n");
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(inWorkspace("b.shout")));
      const [result] = await told(edit("b.shout", "two", "three"));
      word("the editor changed it further (its formatter):", result ?? "");
      word("-one\n-three\n+ONE\n+THREE", result ?? "");
      assert.equal(textOf("b.shout"), "ONE\nTHREE\n");
      const edited = chunks(app).find((chunk) => chunk.type === "edit");
      assert.ok(edited?.type === "edit");
      word("-one\n-two\n+ONE\n+THREE", edited.data.diff ?? "");
      await vscode.commands.executeCommand("daiku.undo");
      await until("the text as it was", () => textOf("b.shout") === "one\ntwo\n");
      const document = await vscode.workspace.openTextDocument(inWorkspace("b.shout"));
      await until("the editor to show it", () => document.getText() === "one\ntwo\n");
    } finally {
      await config.update("formatOnSave", undefined, vscode.ConfigurationTarget.Global);
    }
  });

  it("of a notebook is one of its cells, unsaved ones included", async () => {
    const cell = (kind: string, id: string, source: string[], more: object = {}) => ({
      cell_type: kind,
      id,
      metadata: {},
      ...more,
      source,
    });
    const outputs = [{ name: "stdout", output_type: "stream", text: ["1\n"] }];
    const raw = `${JSON.stringify(
      {
        cells: [
          cell("markdown", "aa", ["# Title"]),
          cell("code", "bb", ["x = 1\n", "print(x)"], { execution_count: 1, outputs }),
          cell("code", "cc", ["y = 2"], { execution_count: null, outputs: [] }),
        ],
        metadata: { language_info: { name: "python" } },
        nbformat: 4,
        nbformat_minor: 5,
      },
      null,
      1,
    )}\n`;
    writeFileSync(inWorkspace("n.ipynb"), raw);
    await autoSave("off"); // that of the browser's editor would save what is to be unsaved
    const closed = await told(edit("n.ipynb", "y = 2", "y = 3"));
    word("+y = 3", closed[0] ?? "");
    assert.equal(readFileSync(inWorkspace("n.ipynb"), "utf8"), raw.replace("y = 2", "y = 3"));

    const notebook = await vscode.workspace.openNotebookDocument(vscode.Uri.file(inWorkspace("n.ipynb")));
    const editor = await vscode.window.showNotebookDocument(notebook);
    const code = notebook.cellAt(1).document;
    const typed = new vscode.WorkspaceEdit();
    typed.insert(code.uri, new vscode.Position(1, 0), "BAD = 7\n");
    await vscode.workspace.applyEdit(typed);
    assert.ok(notebook.isDirty);
    const problems = vscode.languages.createDiagnosticCollection("cells");
    subscriptions.push(problems);
    problems.set(code.uri, [new vscode.Diagnostic(new vscode.Range(1, 0, 1, 3), "bad name")]);

    const [read, seen, changed] = await told(
      call("files/read", { path: "n.ipynb" }),
      call("editor/diagnostics", { path: "n.ipynb" }),
      edit(
        "n.ipynb",
        "# %% cell 3 [code python]\ny = 3",
        "# %% cell new [markdown]\nWhy\n# %% cell 3 [code python]\ny = 4",
      ),
    );
    word("# %% cell 2 [code python] outputs: stdout 1 line", read ?? "");
    const line = (read ?? "").split("\n").findIndex((one) => one.includes("BAD = 7"));
    word(`n.ipynb:${line + 1}:1 (cell 2) error: bad name`, seen ?? "");
    word("+Why", changed ?? "");
    assert.deepEqual(
      notebook.getCells().map((one) => one.document.getText()),
      ["# Title", "x = 1\nBAD = 7\nprint(x)", "Why", "y = 4"],
    );
    assert.equal(notebook.cellAt(1).outputs.length, 1);
    assert.ok(notebook.isDirty, "what was unsaved stays so");
    editor.selection = new vscode.NotebookRange(1, 2);
    const text = await vscode.window.showTextDocument(code);
    text.selection = new vscode.Selection(1, 0, 1, 3);
    const item = selectionAttachment(text)?.item;
    assert.match(item?.uri ?? "", /^file:.*\/n\.ipynb#cell=2$/);
    const actions = await until("the actions in a cell", async () => {
      const all = await vscode.commands.executeCommand<vscode.CodeAction[]>(
        "vscode.executeCodeActionProvider",
        code.uri,
        text.selection,
        vscode.CodeActionKind.QuickFix.value,
        5,
      );
      return all.find((one) => one.command?.command === "daiku.fix");
    });
    await play({ text: "I see." });
    const app = await daiku();
    app.chat.newChat();
    await vscode.commands.executeCommand("daiku.fix", ...(actions?.command?.arguments ?? []));
    const started = chunks(app).find((chunk) => chunk.type === "run_started");
    assert.ok(started?.type === "run_started");
    for (const { uri } of started.data.context) assert.match(uri ?? "", /^file:.*\/n\.ipynb#cell=2$/);
    assert.ok(await notebook.save());
    const saved = JSON.parse(readFileSync(inWorkspace("n.ipynb"), "utf8"));
    assert.deepEqual(
      saved.cells.map((one: { id: string }) => one.id).filter((id: string) => ["aa", "bb", "cc"].includes(id)),
      ["aa", "bb", "cc"],
    );
  });
});

describe("a test that failed", () => {
  it("is asked about with its message, what was expected and where", async () => {
    writeFileSync(inWorkspace("sum.py"), "def test_sum():\n    assert 2 == 1 + 2\n");
    const uri = vscode.Uri.file(inWorkspace("sum.py"));
    const controller = vscode.tests.createTestController("lab", "Lab");
    try {
      const suite = controller.createTestItem("s", "sum.py", uri);
      const test = controller.createTestItem("t", "test_sum", uri);
      controller.items.add(suite);
      suite.children.add(test);
      const message = vscode.TestMessage.diff("2 is not 3", "3", "2");
      message.location = new vscode.Location(uri, new vscode.Range(1, 4, 1, 20));
      const run = controller.createTestRun(new vscode.TestRunRequest([test]));
      run.failed(test, message);
      run.end();
      const app = await daiku();
      await play({ text: "I see what failed." });
      app.chat.newChat();
      await vscode.commands.executeCommand("daiku.fixTest", { test, message });
      const started = chunks(app).find((chunk) => chunk.type === "run_started");
      assert.ok(started?.type === "run_started");
      const [item] = started.data.context;
      assert.equal(item?.text, "Failed test: sum.py › test_sum\n2 is not 3\nExpected:\n3\nActual:\n2");
      assert.equal(item?.uri, uri.toString());
      assert.equal(item?.range?.start.line, 1);
    } finally {
      controller.dispose();
    }
  });
});

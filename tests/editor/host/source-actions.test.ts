import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import * as vscode from "vscode";
import { chunks, daiku, inWorkspace, play, textOf, until } from "./lab";

const CODE = "def one():\n    return 1\n\n\ndef two():\n    return y\n";

describe("code actions", () => {
  const problems = vscode.languages.createDiagnosticCollection("lab");
  let document: vscode.TextDocument;

  before(async () => {
    const app = await daiku();
    if (app.chat.working) await app.chat.stop();
    app.chat.newChat();
    writeFileSync(inWorkspace("code.py"), CODE);
    document = await vscode.workspace.openTextDocument(inWorkspace("code.py"));
    await vscode.window.showTextDocument(document);
    await play(
      {
        text: "I mend it.",
        calls: [
          { tool: "files/edit", args: { path: "code.py", edits: [{ search: "return y", replace: "return 2" }] } },
        ],
      },
      { text: "It is mended." },
    );
    problems.set(document.uri, [new vscode.Diagnostic(new vscode.Range(5, 11, 5, 12), "undefined name 'y'")]);
  });
  after(() => problems.dispose());

  const listed = (range: vscode.Range, kind?: string, resolve = 0) =>
    vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider",
      document.uri,
      range,
      kind,
      resolve,
    );

  it("are offered for a problem and for a selection", async () => {
    const range = new vscode.Range(4, 0, 5, 12);
    const found = await until("the actions", async () => {
      const all = await listed(range);
      return all.some((one) => one.title.includes("Daiku")) ? all : undefined;
    });
    assert.ok(found);
    const titles = found.map((one) => one.title).filter((title) => title.includes("Daiku"));
    assert.ok(titles.includes("Fix with Daiku: undefined name 'y'"), titles.join("; "));
    assert.ok(titles.includes("Refactor with Daiku…"), titles.join("; "));
    assert.ok(titles.includes("Write tests with Daiku"), titles.join("; "));
    const only = await listed(range, vscode.CodeActionKind.QuickFix.value);
    assert.ok(only.every((one) => one.kind && vscode.CodeActionKind.QuickFix.contains(one.kind)));
  });

  it("run in the chat when they are chosen, and their edits arrive", async () => {
    const app = await daiku();
    const place = new vscode.Range(5, 11, 5, 12);
    const [fix] = await listed(place, vscode.CodeActionKind.QuickFix.value, 5);
    assert.equal(fix?.command?.command, "daiku.fix");
    const running = vscode.commands.executeCommand("daiku.fix", ...(fix.command.arguments ?? []));
    const asked = await until("the question", () => app.chat.waiting[0]);
    assert.ok(asked);
    await app.chat.approve({ runId: asked.runId, approvalId: asked.approvalId, decision: "allow_once" });
    await running;
    await until("the edit", () => textOf("code.py").includes("return 2"));
    const started = chunks(app).find((chunk) => chunk.type === "run_started");
    assert.ok(started?.type === "run_started");
    assert.deepEqual(
      started.data.context.map((item) => item.kind),
      ["selection", "symbol", "diagnostics"],
    );
    assert.match(started.data.context[2]?.text ?? "", /undefined name 'y'/);
  });

  it("put a commit message into the box of source control and commit nothing", async function () {
    const extension = vscode.extensions.getExtension("vscode.git");
    if (!extension) return this.skip(); // an editor without its git extension has no such box
    const app = await daiku();
    const git = (...words: string[]) =>
      execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@b.c", ...words], {
        cwd: inWorkspace("."),
        encoding: "utf8",
      });
    try {
      if (!existsSync(inWorkspace(".git"))) git("init", "-q");
      git("add", "code.py");
      const api = (await extension.activate()).getAPI(1);
      const repository = await until("the repository", () => api.openRepository(vscode.Uri.file(inWorkspace("."))));
      await play({ text: "Mend two" });
      app.chat.newChat();
      await vscode.commands.executeCommand("daiku.commitMessage", { rootUri: repository.rootUri });
      assert.equal(repository.inputBox.value, "Mend two");
      assert.throws(() => git("rev-parse", "--verify", "-q", "HEAD"));
      await vscode.commands.executeCommand("git.close", repository.rootUri);
    } finally {
      rmSync(inWorkspace(".git"), { recursive: true, force: true });
    }
  });

  it("are joined by the fix of what failed last in a terminal", async () => {
    const app = await daiku();
    const terminal = vscode.window.createTerminal({ name: "lab", shellPath: "/bin/bash" });
    try {
      terminal.show(true);
      const shell = await until("the shell integration", () => terminal.shellIntegration);
      shell?.executeCommand("sh -c 'sleep 0.3; echo it-went-wrong; sleep 0.3; exit 3'");
      const failure = await until("the failure", () => app.terminals.lastFailure());
      assert.match(failure?.text ?? "", /exit 3'\n(.*\n)*it-went-wrong\n(.*\n)*\[exit code 3\]$/);
      await play({ text: "I see what failed." });
      app.chat.newChat();
      await vscode.commands.executeCommand("daiku.fixTerminal");
      const started = chunks(app).find((chunk) => chunk.type === "run_started");
      assert.ok(started?.type === "run_started");
      assert.deepEqual(
        started.data.context.map((item) => [item.kind, item.text]),
        [["terminal", failure?.text]],
      );
    } finally {
      terminal.dispose();
    }
  });

  it("are lenses over functions once that is set", async () => {
    const provider = vscode.languages.registerDocumentSymbolProvider(
      { language: "python" },
      {
        provideDocumentSymbols: () => [
          new vscode.DocumentSymbol(
            "one",
            "",
            vscode.SymbolKind.Function,
            new vscode.Range(0, 0, 1, 12),
            new vscode.Range(0, 4, 0, 7),
          ),
        ],
      },
    );
    const lenses = async () =>
      (await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", document.uri, 9))
        .map((lens) => lens.command?.title)
        .filter((title) => title !== undefined);
    const config = vscode.workspace.getConfiguration("daiku");
    try {
      assert.deepEqual(await lenses(), []);
      const pid = (await daiku()).server.pid;
      await config.update("codeLens", true, vscode.ConfigurationTarget.Global);
      assert.deepEqual(await until("the lenses", async () => ((await lenses()).length ? lenses() : undefined)), [
        "Explain",
        "Write Tests",
      ]);
      assert.equal((await daiku()).server.pid, pid, "the server was restarted for a lens");
    } finally {
      await config.update("codeLens", undefined, vscode.ConfigurationTarget.Global);
      provider.dispose();
    }
  });
});

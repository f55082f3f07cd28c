import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import * as vscode from "vscode";
import type { App } from "../../../extension/src/app";
import { countOpen } from "../../../extension/src/pure/diff/hunks";
import { ORIGINAL } from "../../../extension/src/review/originals";
import type { ChangeNode } from "../../../extension/src/trees/changes";
import { daiku, decide, inWorkspace, play, textOf, until } from "./lab";

const lines = (...marks: string[]) =>
  `${Array.from({ length: 30 }, (_, n) => marks[n] ?? `line ${n + 1}`).join("\n")}\n`;
const BEFORE = lines();
const edits = [
  { search: "line 3\n", replace: "third\n" },
  { search: "line 15\n", replace: "fifteenth\nand a half\n" },
  { search: "line 28\n", replace: "" },
];
const EDITED = BEFORE.replace("line 3\n", "third\n")
  .replace("line 15\n", "fifteenth\nand a half\n")
  .replace("line 28\n", "");

/** Has the model change two files, and waits until the changes wait for the person. */
async function change(app: App): Promise<void> {
  if (app.chat.working) await app.chat.stop();
  // What other chats changed waits, too, until it is decided on.
  await app.changes.decideAll("accept");
  assert.deepEqual(app.changes.files, []);
  app.chat.newChat();
  await vscode.commands.executeCommand("workbench.action.closeAllEditors");
  for (const name of ["one.txt", "two.txt"]) writeFileSync(inWorkspace(name), BEFORE);
  // The editor keeps documents for a while, and hears of changes on the disk a little later.
  const stale = ({ uri, getText }: vscode.TextDocument) =>
    uri.scheme === "file" && /(one|two)\.txt$/.test(uri.path) && getText() !== BEFORE;
  await until("the documents to be as the files", () => !vscode.workspace.textDocuments.some(stale));
  await app.chat.send("Change them", [], { approvals: "edits" });
  await until("the changes", () => countOpen(app.changes.files).changes === 4);
}

const hunk = (name: string, n: number): ChangeNode => {
  const file = theApp.changes.files.find(({ path }) => path === name);
  const found = file?.hunks[n];
  assert.ok(file && found, `${name} has no hunk ${n}`);
  return { kind: "hunk", file, hunk: found };
};
const count = () => countOpen(theApp.changes.files);
const at = () => {
  const editor = vscode.window.activeTextEditor;
  return editor && `${vscode.workspace.asRelativePath(editor.document.uri)}:${editor.selection.active.line + 1}`;
};
const run = (command: string, ...args: unknown[]) => vscode.commands.executeCommand(command, ...args);
let theApp: App;

describe("changes", () => {
  before(async () => {
    theApp = await daiku();
    await play(
      {
        calls: [
          { tool: "files/edit", args: { path: "one.txt", edits } },
          { tool: "files/edit", args: { path: "two.txt", edits: edits.slice(0, 1) } },
        ],
      },
      { text: "Done." },
    );
  });
  beforeEach(() => change(theApp));
  after(async () => {
    await run("workbench.action.closeAllEditors");
    theApp.chat.newChat();
  });

  it("are listed by file and hunk, and shown in the editor's own diff", async () => {
    assert.deepEqual(count(), { changes: 4, files: 2 });
    assert.equal(theApp.changesTree.view.badge?.value, 4);
    assert.match(theApp.changesTree.view.description ?? "", /^4 changes in 2 files$/);
    await run("daiku.openChange", hunk("one.txt", 1));
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    assert.ok(tab instanceof vscode.TabInputTextDiff);
    assert.equal(tab.original.scheme, ORIGINAL);
    assert.equal((await vscode.workspace.openTextDocument(tab.original)).getText(), BEFORE);
    assert.equal(tab.modified.toString(), vscode.Uri.file(inWorkspace("one.txt")).toString());
  });

  it("are shown all together", async () => {
    await run("daiku.openChanges");
    const tab = await until("the editor of all changes", () => vscode.window.tabGroups.activeTabGroup.activeTab);
    assert.equal(tab?.label.startsWith("Daiku changes"), true, tab?.label);
  });

  it("are gone through across files, round at the ends", async () => {
    const seen: (string | undefined)[] = [];
    for (let n = 0; n < 5; n++) {
      await run("daiku.nextHunk");
      seen.push(at());
    }
    assert.deepEqual(seen, ["one.txt:3", "one.txt:15", "one.txt:29", "two.txt:3", "one.txt:3"]);
    await run("daiku.previousHunk");
    assert.equal(at(), "two.txt:3");
  });

  it("are accepted and rejected one by one from the editor, and the cursor goes on to the next", async () => {
    await run("daiku.nextHunk");
    await run("daiku.acceptHunk");
    assert.deepEqual(count(), { changes: 3, files: 2 });
    assert.equal(at(), "one.txt:15");
    await run("daiku.rejectHunk");
    assert.deepEqual(count(), { changes: 2, files: 2 });
    await until("the file with the second change taken back", () => textOf("one.txt").includes("line 15\n"));
    assert.ok(textOf("one.txt").includes("third\n"), "the accepted change stays");
    assert.equal(at(), "one.txt:28");
    await run("daiku.redo");
    await until("the rejected change to be back", () => textOf("one.txt") === EDITED);
    await until("it to wait again", () => count().changes === 3);
  });

  it("leave the person where they went while one was decided on", async () => {
    await run("daiku.nextHunk");
    const decided = run("daiku.rejectHunk");
    await run("daiku.openChange", hunk("one.txt", 2));
    await decided;
    await until("the first change to be taken back", () => count().changes === 3);
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    assert.ok(tab instanceof vscode.TabInputTextDiff, "the diff that was opened meanwhile");
  });

  it("are rejected by file and altogether", async () => {
    await run("daiku.rejectFile", { kind: "file", file: theApp.changes.files.find(({ path }) => path === "one.txt") });
    await until("the first file as it was", () => textOf("one.txt") === BEFORE);
    assert.deepEqual(count(), { changes: 1, files: 1 });
    await run("daiku.rejectAll");
    await until("the second file as it was", () => textOf("two.txt") === BEFORE);
    assert.deepEqual(count(), { changes: 0, files: 0 });
  });

  it("keep what the person typed meanwhile", async () => {
    await run("daiku.nextHunk");
    const editor = vscode.window.activeTextEditor;
    await editor?.edit((edit) => edit.insert(new vscode.Position(0, 0), "mine\n"));
    await until("the hunks to have moved", () => theApp.changes.files[0]?.hunks[0]?.newStart === 4);
    await run("daiku.rejectAll");
    await until("the text with only what was typed", () => editor?.document.getText() === `mine\n${BEFORE}`);
    await run("workbench.action.files.revert");
  });

  it("still wait after a new chat was begun, and after the server was started anew", async () => {
    theApp.chat.newChat();
    await theApp.changes.refresh();
    assert.deepEqual(count(), { changes: 4, files: 2 });
    await theApp.server.restart("a test");
    await until("the changes to be known again", () => theApp.changes.known);
    assert.deepEqual(count(), { changes: 4, files: 2 });
    assert.equal(theApp.changesTree.view.badge?.value, 4);
  });

  it("offer their decision in the lightbulb", async () => {
    await run("daiku.nextHunk");
    const editor = vscode.window.activeTextEditor;
    assert.ok(editor);
    const actions = (await run(
      "vscode.executeCodeActionProvider",
      editor.document.uri,
      editor.selection,
    )) as vscode.CodeAction[];
    const accept = actions.find(({ title }) => title === "Accept Daiku's change");
    assert.ok(accept?.command, actions.map(({ title }) => title).join("; "));
    await run(accept.command.command, ...(accept.command.arguments ?? []));
    assert.deepEqual(count(), { changes: 3, files: 2 });
  });
});

describe("an undo", () => {
  it("says what it could not undo", async () => {
    theApp = await daiku();
    theApp.chat.newChat();
    await play(
      { calls: [{ tool: "files/write", args: { path: "three.txt", content: "3\n" } }] },
      { calls: [{ tool: "shell/run", args: { command: "echo did > left-behind.txt" } }] },
      { text: "Done." },
    );
    const running = theApp.chat.send("More", [], { approvals: "edits" });
    await decide(theApp, "allow_once");
    await running;
    await run("daiku.undo");
    const restored = theApp.chat.chunks.findLast(({ type }) => type === "restored");
    assert.ok(restored?.type === "restored");
    assert.deepEqual(
      restored.data.cannotUndo.map(({ command }) => command),
      ["echo did > left-behind.txt"],
    );
  });
});

describe("inline chat", () => {
  it("changes a selection in a chat of its own, without asking first, and puts the cursor on the change", async () => {
    theApp = await daiku();
    theApp.chat.newChat();
    await theApp.changes.decideAll("accept");
    writeFileSync(inWorkspace("inline.txt"), BEFORE);
    const document = await vscode.workspace.openTextDocument(inWorkspace("inline.txt"));
    const editor = await vscode.window.showTextDocument(document);
    editor.selection = new vscode.Selection(9, 0, 9, 7);
    await play(
      {
        calls: [{ tool: "files/edit", args: { path: "inline.txt", edits: [{ search: "line 10", replace: "tenth" }] } }],
      },
      { text: "Changed." },
    );
    await run("daiku.inlineChat", "Write it as a word");
    assert.equal(document.getText(), BEFORE.replace("line 10", "tenth"));
    assert.equal(at(), "inline.txt:10");
    assert.equal(theApp.chat.current, undefined, "the open chat is left alone");
    await theApp.chat.open(theApp.changes.files[0]?.sessionId ?? "");
    const started = theApp.chat.chunks.find(({ type }) => type === "run_started");
    assert.ok(started?.type === "run_started");
    assert.deepEqual(
      started.data.context.map(({ kind, text }) => [kind, text]),
      [["selection", "line 10"]],
    );
    await run("daiku.acceptHunk");
    assert.deepEqual(countOpen(theApp.changes.files), { changes: 0, files: 0 });
    assert.equal(document.getText(), BEFORE.replace("line 10", "tenth"));
  });

  it("is offered in the lightbulb over a selection only", async () => {
    const document = await vscode.workspace.openTextDocument(inWorkspace("inline.txt"));
    const titles = async (range: vscode.Range) =>
      ((await run("vscode.executeCodeActionProvider", document.uri, range)) as vscode.CodeAction[]).map(
        (one) => one.title,
      );
    assert.ok((await titles(new vscode.Range(3, 0, 4, 0))).includes("Edit with Daiku…"));
    assert.ok(!(await titles(new vscode.Range(3, 0, 3, 0))).includes("Edit with Daiku…"));
  });
});

// Marks in the editor: each open change where its lines are, and links that can do nothing else than decide on it.

import { beforeEach, expect, it } from "vitest";
import type * as vscode from "vscode";
import type { ChangedFile } from "../../src/contract.gen";
import { watchMarks } from "../../src/review/marks";
import { EventEmitter, editorOf, reset, seen, Uri, window } from "../editor/editor";

const file: ChangedFile = {
  ...{ sessionId: "s1", path: "a.py", kind: "edit", added: 1, removed: 1, binary: false },
  hunks: [
    {
      hunkId: "h1",
      oldStart: 2,
      oldLines: 1,
      newStart: 2,
      newLines: 1,
      text: "-a\n+b\n",
      state: "open",
      touched: false,
    },
    {
      hunkId: "h2",
      oldStart: 4,
      oldLines: 1,
      newStart: 4,
      newLines: 0,
      text: "-a\n",
      state: "accepted",
      touched: false,
    },
  ],
};

function world() {
  const changed = new EventEmitter<void>();
  const drawn: vscode.DecorationOptions[] = [];
  const editor = editorOf("a.py", "1\n2\n3\n4\n");
  editor.setDecorations = (_, options) =>
    void drawn.push(...(options as vscode.DecorationOptions[]).filter((one) => "hoverMessage" in one));
  window.visibleTextEditors = [editor];
  window.activeTextEditor = editor;
  const of = (uri: vscode.Uri) => (uri.path === "/project/a.py" ? [file] : []);
  watchMarks({ files: [file], of, onChange: changed.event }, Uri.file("/extension"));
  changed.fire();
  return { drawn };
}

beforeEach(reset);

it("stand at the lines of the changes that are open", () => {
  expect(world().drawn.map(({ range }) => [range.start.line, range.end.line])).toEqual([[1, 1]]);
});

it("have links that run the commands of a decision, for this change, and no other", () => {
  const [hover] = world().drawn.map(({ hoverMessage }) => hoverMessage as vscode.MarkdownString);
  const allowed = ["daiku.acceptHunk", "daiku.rejectHunk", "daiku.openChange"];
  expect(hover?.isTrusted).toEqual({ enabledCommands: allowed });
  const links = [...(hover?.value ?? "").matchAll(/command:([\w.]+)\?([^)]+)/g)];
  expect(links.map(([, command]) => command)).toEqual(allowed);
  const name = [{ sessionId: "s1", path: "a.py", hunkId: "h1" }];
  for (const [, , args = ""] of links) expect(JSON.parse(decodeURIComponent(args))).toEqual(name);
});

it("tell the keys whether the cursor is in a changed file, and in a change of it", () => {
  world();
  expect([seen.context.get("daiku.fileChanged"), seen.context.get("daiku.hunk")]).toEqual([true, false]);
});

// What a person points at without saying so: the editor that they look at, or looked at last.

import { beforeEach, expect, it } from "vitest";
import { currentEditor, followEditors } from "../../src/editor/context";
import { contextOf, editorOf, reset, window } from "./editor";
import { windowEvents } from "./window";

beforeEach(reset);

it("is the last one while the panel has the focus, until its file is closed", () => {
  const editor = editorOf("a.py", "x = 1");
  window.activeTextEditor = editor;
  followEditors(contextOf("/lab"));
  window.activeTextEditor = undefined;
  windowEvents.activeEditor.fire(undefined);
  expect(currentEditor()).toBe(editor);
  (editor.document as { isClosed: boolean }).isClosed = true;
  expect(currentEditor()).toBeUndefined();
});

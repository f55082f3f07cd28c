// Inline chat: say at the selection what is to be done; the edits show up in place, to be accepted by key.

import * as vscode from "vscode";
import type { Chat } from "../chat/chat";
import type { Panel } from "../chat/panel";
import type { RunResult } from "../contract.gen";
import { currentEditor, selectionAttachment } from "../editor/context";
import { toWireRange } from "../editor/ranges";
import { t } from "../l10n";
import { showControls } from "../pure/text/ansi";
import type { Changes } from "../review/changes";
import { goToFirst } from "../review/navigate";
import type { Originals } from "../review/originals";

export interface InlineParts {
  chat: Pick<Chat, "send" | "open">;
  changes: Pick<Changes, "files" | "of" | "refresh">;
  originals: Pick<Originals, "open">;
  panel: Pick<Panel, "reveal">;
}

/** The instructions of this window, the newest first. */
const said: string[] = [];
const MOST_SAID = 20;
/** Of an answer, so much is shown in a notification. */
const MOST_SHOWN = 400;

/** Asks for an instruction (or takes it from a string argument), sends it with the selection, shows what was changed. */
export async function inlineChat(parts: InlineParts, argument?: unknown): Promise<void> {
  const editor = currentEditor();
  if (editor?.document.uri.scheme !== "file")
    return void vscode.window.showInformationMessage(t("Open a file in this workspace first."));
  if (editor.selection.isEmpty) {
    const line = editor.document.lineAt(editor.selection.active.line);
    editor.selection = new vscode.Selection(line.range.start, line.range.end);
  }
  const range = new vscode.Range(editor.selection.start, editor.selection.end);
  const attachment = selectionAttachment(editor, range) ?? {
    item: { kind: "file" as const, uri: editor.document.uri.toString() },
    label: vscode.workspace.asRelativePath(editor.document.uri),
  };
  const where = highlight(editor, range);
  try {
    const text = typeof argument === "string" ? argument : await ask(attachment.label);
    if (!text) return;
    where.working();
    // What is asked for in place is looked through in place, in a chat of its own; what lies anywhere else is asked about.
    const grant = { uri: editor.document.uri.toString(), range: toWireRange(range) };
    const result = await parts.chat.send(text, [attachment.item], { mode: "act", grant, ownChat: true });
    await parts.changes.refresh();
    if (result) await showResult(parts, editor, result);
  } finally {
    where.dispose();
  }
}

/** What the person asks for; the arrow keys bring back what was asked before (`daiku.inlineChat.previous`, `.next`). */
function ask(label: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const input = vscode.window.createInputBox();
    input.title = t("Edit {0} with Daiku", label);
    input.placeholder = t("Describe the change (Enter to send, ↑ for history)");
    input.ignoreFocusOut = true;
    let at = -1;
    let draft = "";
    const recall = (by: 1 | -1) => {
      const next = at + by;
      if (next < -1 || next >= said.length) return;
      if (at === -1) draft = input.value;
      at = next;
      input.value = at === -1 ? draft : (said[at] ?? "");
    };
    const commands = [
      vscode.commands.registerCommand("daiku.inlineChat.previous", () => recall(1)),
      vscode.commands.registerCommand("daiku.inlineChat.next", () => recall(-1)),
    ];
    void vscode.commands.executeCommand("setContext", "daiku.inlineChatOpen", true);
    input.onDidAccept(() => {
      // The box itself says what was typed, to the last letter; a list beside it would lag behind.
      const text = input.value.trim();
      if (!text) return;
      said.splice(0, said.length, ...[text, ...said.filter((one) => one !== text)].slice(0, MOST_SAID));
      resolve(text);
      input.hide();
    });
    input.onDidHide(() => {
      resolve(undefined);
      void vscode.commands.executeCommand("setContext", "daiku.inlineChatOpen", false);
      vscode.Disposable.from(...commands, input).dispose();
    });
    input.show();
  });
}

/** Keeps the place visible while the input has the focus, and says there that work goes on. */
function highlight(editor: vscode.TextEditor, range: vscode.Range) {
  const look = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("editor.rangeHighlightBackground"),
    borderWidth: "0 0 0 3px",
    borderStyle: "solid",
    borderColor: new vscode.ThemeColor("focusBorder"),
    overviewRulerColor: new vscode.ThemeColor("focusBorder"),
  });
  const words = vscode.window.createTextEditorDecorationType({
    after: { margin: "0 0 0 3em", color: new vscode.ThemeColor("editorCodeLens.foreground"), fontStyle: "italic" },
  });
  editor.setDecorations(look, [range]);
  return {
    working: () => {
      const end = editor.document.lineAt(range.start.line).range.end;
      const after = { contentText: t("Daiku is working here…") };
      editor.setDecorations(words, [{ range: new vscode.Range(end, end), renderOptions: { after } }]);
    },
    dispose: () => vscode.Disposable.from(look, words).dispose(),
  };
}

/** To the first change that this request made, in this file if there is one; else its answer is shown. */
async function showResult(parts: InlineParts, editor: vscode.TextEditor, result: RunResult): Promise<void> {
  const { changes, panel, chat } = parts;
  const own = changes.files.filter(({ sessionId }) => sessionId === result.sessionId);
  const here = changes.of(editor.document.uri).find((file) => own.includes(file));
  const file = here ?? own[0];
  if (file && result.status.startsWith("completed")) return goToFirst(parts.originals, file);
  const show = t("Show");
  const words = showControls(result.text.trim()).slice(0, MOST_SHOWN) || t("No changes were made.");
  const say = result.status === "completed" ? vscode.window.showInformationMessage : vscode.window.showWarningMessage;
  // It stands there until the person has read it; nothing waits for that.
  void say(words, show).then(async (picked) => {
    if (picked !== show) return;
    await chat.open(result.sessionId);
    await panel.reveal();
  });
}

/** The lightbulb over a selection. */
export function inlineChatActions(): vscode.Disposable {
  const kind = vscode.CodeActionKind.RefactorRewrite;
  return vscode.languages.registerCodeActionsProvider(
    { scheme: "file" },
    {
      provideCodeActions: (_, range) => {
        if (range.isEmpty) return [];
        const title = t("Edit with Daiku…");
        const action = new vscode.CodeAction(title, kind);
        action.command = { title, command: "daiku.inlineChat" };
        return [action];
      },
    },
    { providedCodeActionKinds: [kind] },
  );
}

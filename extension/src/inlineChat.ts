// Inline chat: say at the selection what is to be done; the edits show up in place, to be accepted by key.

import * as vscode from "vscode";
import type { App } from "./app";
import { currentEditor, selectionAttachment } from "./context";
import { t } from "./l10n";
import { goToFirst } from "./review/commands";

/** The instructions of this window, the newest first. */
const said: string[] = [];
const MOST_SAID = 20;

export async function inlineChat(parts: App, argument?: unknown): Promise<void> {
  const editor = currentEditor();
  if (editor?.document.uri.scheme !== "file")
    return void vscode.window.showInformationMessage(t("Open a file of this workspace first."));
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
    if (parts.chat.working) parts.chat.newChat();
    where.working();
    // What is asked for in place is looked through in place; what lies anywhere else is asked about.
    const grant = { uri: editor.document.uri.toString(), range: { start: range.start, end: range.end } };
    const options = { mode: "act" as const, grant };
    const result = await parts.chat.send(text, [attachment.item], options);
    await parts.changes.refresh();
    if (result?.status === "completed") await afterwards(parts, editor, result.text);
  } finally {
    where.dispose();
  }
}

/** An input that names the selection; the arrow keys bring back what was said before. */
function ask(label: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const input = vscode.window.createQuickPick();
    input.title = t("Edit {0} with Daiku", label);
    input.placeholder = t("What is to be done here? (Enter sends)");
    input.ignoreFocusOut = true;
    const offer = () => {
      const typed = input.value.trim();
      const former = said.filter((text) => text !== typed && text.includes(typed));
      input.items = [
        ...(typed ? [{ label: typed, iconPath: new vscode.ThemeIcon("send"), alwaysShow: true }] : []),
        ...former.map((text) => ({ label: text, iconPath: new vscode.ThemeIcon("history") })),
      ];
    };
    offer();
    input.onDidChangeValue(offer);
    input.onDidAccept(() => {
      const text = (input.activeItems[0]?.label ?? input.value).trim();
      if (!text) return;
      said.splice(0, said.length, ...[text, ...said.filter((one) => one !== text)].slice(0, MOST_SAID));
      resolve(text);
      input.hide();
    });
    input.onDidHide(() => {
      resolve(undefined);
      input.dispose();
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
      const after = { contentText: t("Daiku is at work here…") };
      editor.setDecorations(words, [{ range: new vscode.Range(end, end), renderOptions: { after } }]);
    },
    dispose: () => vscode.Disposable.from(look, words).dispose(),
  };
}

/** To the first change in the file; where nothing was changed, the answer is shown. */
async function afterwards(parts: App, editor: vscode.TextEditor, answer: string): Promise<void> {
  const { changes, panel } = parts;
  const file = changes.of(editor.document.uri) ?? changes.files[0];
  if (!file) {
    const show = t("Show");
    const words = answer.trim().split("\n")[0]?.slice(0, 200) || t("Nothing was changed.");
    void vscode.window
      .showInformationMessage(words, show)
      .then((picked) => (picked === show ? panel.reveal() : undefined));
    return;
  }
  await goToFirst(parts, file.path);
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

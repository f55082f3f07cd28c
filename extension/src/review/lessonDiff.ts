// Lessons as texts, and the editor's own diff of a change of one: what they say stands in their addresses.

import * as vscode from "vscode";
import type { ShownDelta } from "../contract.gen";
import { sidesOf } from "../pure/diff/lesson";

const LESSON = "daiku-lesson";
/** The manifest shows the buttons that decide where the right side has the first of these names. */
const [WAITS, DECIDED, BEFORE] = ["proposal.md", "lesson.md", "before.md"];

export interface LessonDiffs extends vscode.Disposable {
  /** Shows the difference that a change makes. */
  open(shown: ShownDelta, title: string): Promise<void>;
  /** Shows a text about a lesson. */
  read(id: string, text: string): Promise<void>;
  /** Closes the diff of a change that was decided. */
  close(delta: string): Promise<void>;
}

/** The id of the change that a document of ours belongs to. */
export const deltaOf = (uri: vscode.Uri): string | undefined =>
  uri.scheme === LESSON ? uri.path.split("/")[1] : undefined;

/** Registers the texts of lessons as documents; answers with what opens their diffs. */
export function createLessonDiffs(): LessonDiffs {
  const provider = vscode.workspace.registerTextDocumentContentProvider(LESSON, {
    provideTextDocumentContent: ({ query }) => query,
  });
  return {
    open: async ({ id, status, diff }, title) => {
      const [before, after] = sidesOf(diff);
      const side = (name: string, query: string) => vscode.Uri.from({ scheme: LESSON, path: `/${id}/${name}`, query });
      const uris = [side(BEFORE, before), side(status === "proposed" ? WAITS : DECIDED, after)];
      await vscode.commands.executeCommand("vscode.diff", ...uris, title, { preview: true, preserveFocus: true });
    },
    read: async (id, query) => {
      const uri = vscode.Uri.from({ scheme: LESSON, path: `/${id}/${id}.md`, query });
      await vscode.window.showTextDocument(uri, { preview: true, preserveFocus: true });
    },
    close: async (delta) => {
      const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
      const ours = tabs.filter(
        ({ input }) => input instanceof vscode.TabInputTextDiff && deltaOf(input.modified) === delta,
      );
      if (ours.length) await vscode.window.tabGroups.close(ours, true);
    },
    dispose: () => provider.dispose(),
  };
}

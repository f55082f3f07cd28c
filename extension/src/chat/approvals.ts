// Questions that wait while the panel is out of sight: said in a notification, answered in the panel.

import * as vscode from "vscode";
import { t } from "../l10n";
import { showControls } from "../pure/text/ansi";
import type { Chat } from "./chat";
import type { Panel } from "./panel";

type Asking = Pick<Chat, "waiting" | "onWaiting" | "onAskedElsewhere" | "open">;
type Shown = Pick<Panel, "visible" | "onHidden" | "count">;

/** Shows a notification for each question that the panel does not show, and counts them on the panel's icon. */
export function watchApprovals(chat: Asking, panel: Shown, reveal: () => Promise<void>): vscode.Disposable {
  const show = t("Show");
  const elsewhere = chat.onAskedElsewhere(async (session) => {
    const words = t("Daiku is waiting for your answer in another chat.");
    if ((await vscode.window.showInformationMessage(words, show)) !== show) return;
    await chat.open(session);
    await reveal();
  });
  const shown = new Set<string>();
  // What exactly will be done stands in the panel; a notification is too small to decide by.
  const tell = () => {
    const fresh = chat.waiting.find((one) => !shown.has(one.approvalId));
    if (!fresh || panel.visible()) return;
    shown.add(fresh.approvalId);
    const what = showControls(fresh.preview.split("\n")[0] ?? "").slice(0, 120);
    const words = fresh.kind === "command" ? t("Daiku wants to run: {0}", what) : t("Daiku needs your approval.");
    void vscode.window.showInformationMessage(words, show).then((picked) => (picked === show ? reveal() : undefined));
  };
  const here = chat.onWaiting((waiting) => {
    void vscode.commands.executeCommand("setContext", "daiku.waiting", waiting.length > 0);
    panel.count(waiting.length);
    tell();
  });
  return vscode.Disposable.from(elsewhere, here, panel.onHidden(tell));
}

/** Answers the oldest question: a key for each, so that the hands stay where they are. */
export async function answerOldest(
  chat: Pick<Chat, "waiting" | "approve">,
  decision: "allow_once" | "reject_once",
): Promise<void> {
  const oldest = chat.waiting[0];
  if (oldest) await chat.approve({ runId: oldest.runId, approvalId: oldest.approvalId, decision });
}

// The trace of a chat: what its agents did, what that took, and the way from each of it to its place in the chat.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { TraceResult } from "../contract.gen";
import { t } from "../l10n";
import { type TracePressed, type TraceWords, traceDrawn, tracePage } from "../pure/server/tracePage";
import { traceRows } from "../pure/server/traceRows";
import { failureOf, failureWords, request } from "../server/rpc";
import type { Server } from "../server/server";

/** What the page needs of the rest: the server, and what its rows and buttons lead to. */
interface TraceParts {
  server: Pick<Server, "client">;
  openPlace(session: string, seq: number, callId: string): Promise<void>;
  openLines(session: string): Promise<void>;
}

/** While a run is under way the page is drawn anew so often. */
const EVERY_MS = 1500;

interface Page {
  panel: vscode.WebviewPanel;
  timer: NodeJS.Timeout | undefined;
}

const pages = new Map<string, Page>();

/** Opens the page of a session, or brings it to the front and looks again. */
export async function showTrace(parts: TraceParts, session: string): Promise<void> {
  const found = await ask(parts, session);
  const known = pages.get(session);
  if (known) {
    known.panel.reveal();
    return draw(parts, session, known, found);
  }
  const title = titleOf(found);
  const panel = vscode.window.createWebviewPanel("daiku.trace", title, vscode.ViewColumn.Active, {
    enableScripts: true,
    localResourceRoots: [],
  });
  const page: Page = { panel, timer: undefined };
  pages.set(session, page);
  panel.onDidDispose(() => {
    clearTimeout(page.timer);
    pages.delete(session);
  });
  panel.webview.onDidReceiveMessage((pressed: TracePressed) => press(parts, session, pressed).catch(tell));
  const rows = traceRows(found);
  const nonce = randomBytes(16).toString("hex");
  panel.webview.html = tracePage({ words: words(title), rows, language: vscode.env.language, nonce });
  again(parts, session, page, found);
}

const ask = async ({ server }: TraceParts, sessionId: string): Promise<TraceResult> =>
  request(await server.client(), "daiku/trace/get", { sessionId });

const titleOf = ({ session }: TraceResult): string => t("Trace: {0}", session.title || session.sessionId);

function draw(parts: TraceParts, session: string, page: Page, found: TraceResult): void {
  void page.panel.webview.postMessage(traceDrawn(words(titleOf(found)), traceRows(found)));
  again(parts, session, page, found);
}

/** Looks again after a while, as long as something is under way. */
function again(parts: TraceParts, session: string, page: Page, { spans }: TraceResult): void {
  clearTimeout(page.timer);
  if (!spans.some(({ status }) => status === "running")) return;
  page.timer = setTimeout(() => {
    ask(parts, session).then(
      (found) => pages.get(session) === page && draw(parts, session, page, found),
      () => undefined, // the server is being restarted: the person can look again
    );
  }, EVERY_MS);
}

/** What goes wrong behind a button of the page. */
function tell(error: unknown): void {
  const failure = failureOf(error);
  if (failure) void vscode.window.showErrorMessage(failureWords(failure));
}

async function press(parts: TraceParts, session: string, pressed: TracePressed): Promise<void> {
  if ("open" in pressed) return parts.openPlace(session, Number(pressed.open.seq), String(pressed.open.callId));
  return pressed.act === "lines" ? parts.openLines(session) : showTrace(parts, session);
}

const words = (title: string): TraceWords => ({
  title,
  columns: {
    name: t("Name"),
    tokens: t("Tokens in → out"),
    cost: t("Cost"),
    time: t("Duration"),
    course: t("Timeline"),
  },
  kinds: { agent: t("Agent"), chat: t("Model"), tool: t("Tool") },
  states: { running: t("Running"), ok: t("Done"), failed: t("Failed"), cancelled: t("Ended early") },
  errors: {
    ...{ denied: t("not allowed"), rejected: t("rejected"), unattended: t("no one available to approve") },
    ...{ interrupted: t("interrupted"), not_run: t("not run"), limit: t("limit reached") },
    ...{ completed_unverified: t("not verified") },
  },
  acts: { refresh: t("Refresh"), lines: t("Open as JSON Lines"), open: t("Show in Chat") },
  sums: {
    agents: t("Agents: {0}"),
    chats: t("Model calls: {0}"),
    tools: t("Tool calls: {0}"),
    in: t("{0} tokens in"),
    out: t("{0} out"),
    retries: t("retries: {0}"),
  },
  running: t("running"),
  nothing: t("No activity in this chat yet."),
  keys: t("Use the arrow keys to move, expand, and collapse. Press Enter to show the entry in the chat."),
});

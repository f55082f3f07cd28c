// Puts the parts together: server, chat, panel, commands.

import * as vscode from "vscode";
import { watchApprovals } from "./chat/approvals";
import { type Chat, createChat } from "./chat/chat";
import { createPanel, type Panel, VIEW } from "./chat/panel";
import { listen } from "./chat/requests";
import { createStatus } from "./chat/status";
import { watchLenses } from "./commands/codeLens";
import { inlineChatActions } from "./commands/inlineChat";
import { change, dropped } from "./commands/plan";
import { registerCommands } from "./commands/register";
import type { Chunk } from "./contract.gen";
import { followEditors } from "./editor/context";
import { ownSetting } from "./editor/paths";
import { type Terminals, watchTerminals } from "./editor/terminals";
import type { Mode, Situation, ToPanel } from "./pure/chat/panel";
import { undoneOf } from "./pure/chat/undone";
import { type Changes, createChanges } from "./review/changes";
import { createDiffs } from "./review/editDiff";
import { createReviewStatus, watchMarks } from "./review/marks";
import { createOriginals, type Originals } from "./review/originals";
import { createModels, type Models } from "./server/models";
import { failureOf } from "./server/rpc";
import { isApiKey } from "./server/secrets";
import { createServer, type Server } from "./server/server";
import { type ChangesTree, createChangesTree } from "./trees/changes";
import { createPlanTree, type PlanTree } from "./trees/plan";
import { createSessionsTree, type SessionsTree } from "./trees/sessions";

export interface App {
  server: Server;
  chat: Chat;
  panel: Panel;
  log: vscode.LogOutputChannel;
  models: Models;
  terminals: Terminals;
  secrets: vscode.SecretStorage;
  plans: PlanTree;
  sessions: SessionsTree;
  changes: Changes;
  changesTree: ChangesTree;
  originals: Originals;
  /** Where the extension is installed. */
  extension: vscode.Uri;
  /** Where the editor keeps the log of this extension. */
  logFolder: string;
}

const MODE = "daiku.mode";

export function createApp(context: vscode.ExtensionContext): App {
  const log = vscode.window.createOutputChannel("Daiku", { log: true });
  const server = createServer(context, log);
  const models = createModels(server, context.workspaceState, log);
  // Where nothing may be run or changed, no mode that would try is offered.
  const mode = (): Mode => (vscode.workspace.isTrusted ? (context.workspaceState.get<Mode>(MODE) ?? "act") : "ask");
  const post = (message: ToPanel) => panel.post(message);
  /** What the person wants to see before it is done; a workspace has no word on it. */
  const approvals = () => (ownSetting<string>("review") === "after" ? ("edits" as const) : ("ask" as const));
  const choice = () => ({ mode: mode(), model: models.chosen, approvals: approvals() });
  const chat = createChat({ server, state: context.workspaceState, log, post, choice });
  const diffs = createDiffs(context);
  const situation = (): Situation => ({
    server: server.state,
    trusted: vscode.workspace.isTrusted,
    model: models.chosen,
    mode: mode(),
    folder: (vscode.workspace.workspaceFolders?.length ?? 0) > 0,
    ...(models.known ? { models: models.known } : {}),
  });
  const tell = () => post({ type: "situation", situation: situation() });
  const setMode = (chosen: Mode) => void context.workspaceState.update(MODE, chosen).then(tell);
  const panel = createPanel(context.extensionUri, listen({ chat, diffs, log, post, situation, setMode, server }));
  const changes = createChanges(chat, server, log);
  const originals = createOriginals(changes);
  const fail = (error: unknown) => void vscode.window.showErrorMessage(failureOf(error)?.message ?? "");
  const plans = createPlanTree(chat, (plan, step, before) =>
    change({ server, chat }, plan, dropped(plan, step, before)).catch(fail),
  );
  const app: App = {
    server,
    chat,
    panel,
    log,
    models,
    terminals: watchTerminals(context),
    secrets: context.secrets,
    plans,
    sessions: createSessionsTree(chat, server),
    changes,
    changesTree: createChangesTree(changes),
    originals,
    extension: context.extensionUri,
    logFolder: context.logUri.fsPath,
  };

  followEditors(context);
  watchLenses(context);
  context.subscriptions.push(
    ...[log, changes, originals, app.plans, app.sessions, app.changesTree],
    watchMarks(app),
    createReviewStatus(app),
    inlineChatActions(),
    vscode.window.registerWebviewViewProvider(VIEW, panel),
    createStatus(server, chat),
    watchUndo(chat),
    watchApprovals(chat, panel, () => showWaiting(panel)),
    server.onState((state) => {
      tell();
      if (state.phase === "ready") void chat.reload().then(models.refresh);
    }),
    models.onChange(tell),
    chat.onWorking((working) => void vscode.commands.executeCommand("setContext", "daiku.working", working)),
    ...registerCommands(app),
  );
  watchSettings(context, app);
  if (vscode.workspace.isTrusted) setImmediate(() => server.client().catch(() => undefined));
  // `npm start` shows Daiku at once; an installed Daiku waits until it is asked for.
  if (process.env.DAIKU_DEV_OPEN) setImmediate(() => void panel.reveal());
  return app;
}

const DECIDES: ReadonlySet<Chunk["type"]> = new Set(["edit", "review", "restored"]);

/** Whether there is something to undo, to bring back, and a chat at all: keys that would do nothing are left to others. */
function watchUndo(chat: Chat): vscode.Disposable {
  const tell = () => {
    const { chunks } = chat;
    const { standing, redo } = undoneOf(chunks);
    void vscode.commands.executeCommand("setContext", "daiku.canUndo", standing !== undefined);
    void vscode.commands.executeCommand("setContext", "daiku.canRedo", redo !== undefined);
    void vscode.commands.executeCommand("setContext", "daiku.chatOpen", chunks.length > 0);
  };
  return chat.onChunks((fresh) => {
    const all = fresh[0]?.seq === chat.chunks[0]?.seq;
    if (all || fresh.some(({ type }) => DECIDES.has(type))) tell();
  });
}

async function showWaiting(panel: Panel): Promise<void> {
  await panel.reveal();
  panel.post({ type: "focus", what: "approval" });
}

/** What the server was told at its start has changed: it starts anew, once no run would be cut off by it. */
function watchSettings(context: vscode.ExtensionContext, { server, chat, log }: App): void {
  let due: string | undefined;
  const restart = (why: string) => {
    if (server.state.phase === "off") return;
    due = why;
    if (chat.busy) log.info(`${why}; the server restarts when the run has ended`);
    else go();
  };
  const go = () => {
    const why = due;
    due = undefined;
    if (why) void server.restart(why).catch(() => undefined);
  };
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration((event) => {
      const own = ["daiku.codeLens", "daiku.review"].some((name) => event.affectsConfiguration(name));
      if (event.affectsConfiguration("daiku") && !own) restart("settings changed");
    }),
    context.secrets.onDidChange(({ key }) => isApiKey(key) && restart("an API key changed")),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      if (server.state.phase === "off") void server.client().catch(() => undefined);
      else restart("the workspace is trusted now");
    }),
    chat.onWorking(() => {
      if (!chat.busy) go();
    }),
  );
}

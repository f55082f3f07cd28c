// Puts the parts together: server, chat, panel, review, trees, commands.

import * as vscode from "vscode";
import { watchApprovals } from "./chat/approvals";
import { type Chat, createChat } from "./chat/chat";
import { createPanel, type Panel, VIEW } from "./chat/panel";
import { handleRequests } from "./chat/requests";
import { createStatus } from "./chat/status";
import { isTakenOver } from "./chat/takenOver";
import { watchUndo } from "./chat/undo";
import { watchLenses } from "./commands/codeLens";
import { inlineChatActions } from "./commands/inlineChat";
import { updateSteps } from "./commands/plan";
import { type CommandParts, registerCommands } from "./commands/register";
import { followEditors } from "./editor/context";
import { watchTerminals } from "./editor/terminals";
import { type Approvals, approvalsOf, type Mode, REVIEW, type Situation, type ToPanel } from "./pure/chat/panel";
import { withDragged } from "./pure/chat/steps";
import { createChanges } from "./review/changes";
import { createEditDiffs } from "./review/editDiff";
import { createLessonDiffs } from "./review/lessonDiff";
import { createReviewStatus, watchMarks } from "./review/marks";
import { createOriginals } from "./review/originals";
import { createModels, type Models } from "./server/models";
import { restartOnChange } from "./server/restart";
import { failureOf } from "./server/rpc";
import { createServer, type Server } from "./server/server";
import { ownSetting } from "./server/settings";
import { createChangesTree } from "./trees/changes";
import { createPlanTree } from "./trees/plan";
import { createPlaybookTree } from "./trees/playbook";
import { createSessionsTree } from "./trees/sessions";
import { createWorkTree } from "./trees/work";

export interface App extends CommandParts {
  server: Server;
  chat: Chat;
  panel: Panel;
  log: vscode.LogOutputChannel;
  models: Models;
  /** Where the editor keeps the log of this extension. */
  logFolder: string;
}

const MODE = "daiku.mode";

/** Makes all parts, connects them, and starts the server unless the workspace is untrusted. */
export function createApp(context: vscode.ExtensionContext): App {
  const log = vscode.window.createOutputChannel("Daiku", { log: true });
  const server = createServer(context, log);
  const models = createModels(server, context.workspaceState, log);
  const takenOver = isTakenOver(
    context.globalState,
    context.workspaceState,
    vscode.workspace.workspaceFolders?.[0]?.uri.fsPath,
  );
  const { chat, panel, tellSituation } = createChatAndPanel(context, { server, models, log });
  const changes = createChanges(chat, server, log);
  const app: App = {
    ...{ server, chat, panel, log, models, changes },
    terminals: watchTerminals(context),
    secrets: context.secrets,
    originals: createOriginals(changes),
    plans: createPlanTree(chat, (plan, step, before) =>
      updateSteps({ server, chat }, plan, withDragged(plan, step.stepId, before?.stepId)).catch(showFailure),
    ),
    sessions: createSessionsTree(chat, server),
    changesTree: createChangesTree(changes),
    work: createWorkTree(server),
    playbook: createPlaybookTree(server),
    lessonDiffs: createLessonDiffs(),
    everywhere: context.globalState,
    place: context.extensionUri,
    logFolder: context.logUri.fsPath,
  };
  followEditors(context);
  context.subscriptions.push(
    ...[log, changes, app.originals, app.plans, app.sessions, app.changesTree, app.work, app.playbook, app.lessonDiffs],
    ...watchers(app, tellSituation),
    ...registerCommands(app),
    ...restartOnChange({ server, log, secrets: context.secrets, runs: chat }),
    soon(() => sights(context, app)),
  );
  if (vscode.workspace.isTrusted) setImmediate(() => server.client().catch(() => undefined));
  // `npm start` shows Daiku at once; an installed Daiku waits until it is asked for.
  if (process.env.DAIKU_DEV_OPEN || takenOver) setImmediate(() => void panel.reveal());
  return app;
}

/** The chat and its panel, each of which tells the other. */
function createChatAndPanel(
  context: vscode.ExtensionContext,
  { server, models, log }: Pick<App, "server" | "models" | "log">,
) {
  const state = context.workspaceState;
  const post = (message: ToPanel) => panel.post(message);
  // Where nothing may be run or changed, no mode that would try is offered.
  const mode = (): Mode => (vscode.workspace.isTrusted ? (state.get<Mode>(MODE) ?? "act") : "ask");
  /** The level chosen in the panel until the editor has written it to the settings: a message sent meanwhile obeys it. */
  let choosing: Approvals | undefined;
  /** What the person wants to see before it is done; a workspace has no word on it. */
  const approvals = () => choosing ?? approvalsOf(ownSetting<string>("review"));
  const choice = () => ({ mode: mode(), model: models.chosen, approvals: approvals() });
  const chat = createChat({ server, state, log, post, choice });
  const diffs = createEditDiffs();
  context.subscriptions.push(diffs);
  const situation = (): Situation => ({
    server: server.state,
    trusted: vscode.workspace.isTrusted,
    model: models.chosen,
    mode: mode(),
    approvals: approvals(),
    folder: (vscode.workspace.workspaceFolders?.length ?? 0) > 0,
    ...(models.known ? { models: models.known } : {}),
  });
  const tellSituation = () => post({ type: "situation", situation: situation() });
  const setMode = (chosen: Mode) => void state.update(MODE, chosen).then(tellSituation);
  const setApprovals = async (chosen: Approvals) => {
    const everywhere = true; // a workspace must not hold the user's approvals
    choosing = chosen;
    tellSituation();
    try {
      await vscode.workspace.getConfiguration("daiku").update("review", REVIEW[chosen] ?? REVIEW.ask, everywhere);
    } finally {
      if (choosing === chosen) choosing = undefined;
      tellSituation();
    }
  };
  const requests = { chat, server, log, post, situation, setMode, setApprovals, openDiff: diffs.open };
  const panel: Panel = createPanel(context.extensionUri, handleRequests(requests));
  return { chat, panel, tellSituation };
}

/** What is seen beside the parts: marks, status bar, lenses, the lightbulb. */
function sights(context: vscode.ExtensionContext, { server, chat, changes }: App): vscode.Disposable[] {
  return [
    createStatus(server, chat),
    createReviewStatus(changes),
    watchMarks(changes, context.extensionUri),
    watchLenses(),
    inlineChatActions(),
  ];
}

/** Makes them when the extension is activated: the editor waits for what it must know, not for what is only seen. */
function soon(make: () => vscode.Disposable[]): vscode.Disposable {
  let made: vscode.Disposable[] = [];
  const waiting = setImmediate(() => {
    made = make();
  });
  return {
    dispose: () => {
      clearImmediate(waiting);
      for (const one of made) one.dispose();
    },
  };
}

/** What follows the parts and tells of them: notifications, the panel's situation, keys. */
function watchers(app: App, tellSituation: () => void): vscode.Disposable[] {
  const { server, chat, panel, models, work, playbook } = app;
  return [
    vscode.window.registerWebviewViewProvider(VIEW, panel),
    watchUndo(chat),
    watchApprovals(chat, panel, async () => {
      await panel.reveal();
      panel.post({ type: "focus", what: "approval" });
    }),
    server.onState((state) => {
      tellSituation();
      if (state.phase === "ready") void chat.reload().then(models.refresh);
    }),
    models.onChange(tellSituation),
    // A worker is another process: what it says in the open chat comes with the news of its item.
    work.onItems((items) => {
      if (items.some(({ sessionId }) => sessionId === chat.current)) void chat.catchUp().catch(() => undefined);
    }),
    chat.onWorking((working) => working || playbook.expect()),
    // What a run taught comes after its end, when nothing is streamed any more.
    playbook.onTold(() => void (chat.working || chat.catchUp().catch(() => undefined))),
    chat.onWorking((working) => void vscode.commands.executeCommand("setContext", "daiku.working", working)),
  ];
}

const showFailure = (error: unknown) => void vscode.window.showErrorMessage(failureOf(error)?.message ?? "");

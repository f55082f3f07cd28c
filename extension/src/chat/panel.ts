// The side panel: a webview that holds no state of its own which the server or this window could not give it again.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { t } from "../l10n";
import type { FromPanel, ToPanel } from "../pure/chat/panel";

export const VIEW = "daiku.chat";

export interface Panel extends vscode.WebviewViewProvider {
  post(message: ToPanel): void;
  visible(): boolean;
  /** The panel went out of sight. */
  readonly onHidden: vscode.Event<void>;
  /** How many questions wait in it: shown on its icon. */
  count(waiting: number): void;
  /** Brings the panel to the front and waits until it listens. */
  reveal(): Promise<void>;
}

export function createPanel(extension: vscode.Uri, receive: (message: FromPanel) => void): Panel {
  let view: vscode.WebviewView | undefined;
  let listens = false;
  const waiting: (() => void)[] = [];
  const hidden = new vscode.EventEmitter<void>();
  let questions = 0;
  const mark = () => {
    const tooltip = questions === 1 ? t("1 question waits") : t("{0} questions wait", questions);
    if (view) view.badge = questions ? { value: questions, tooltip } : undefined;
  };
  const assets = vscode.Uri.joinPath(extension, "dist");
  return {
    resolveWebviewView(fresh) {
      view = fresh;
      listens = false;
      fresh.webview.options = { enableScripts: true, enableForms: false, localResourceRoots: [assets] };
      fresh.webview.onDidReceiveMessage((message: FromPanel) => {
        if (message.type === "ready") {
          listens = true;
          receive(message);
          for (const go of waiting.splice(0)) go();
        } else receive(message);
      });
      // A hidden panel is gone; shown again, it starts anew and says that it is ready.
      fresh.onDidChangeVisibility(() => {
        if (fresh.visible) return;
        listens = false;
        hidden.fire();
      });
      fresh.onDidDispose(() => {
        if (view === fresh) view = undefined;
        listens = false;
      });
      mark();
      fresh.webview.html = page(fresh.webview, assets);
    },
    post: (message) => {
      if (listens) void view?.webview.postMessage(message);
    },
    visible: () => view?.visible === true,
    onHidden: hidden.event,
    count: (now) => {
      questions = now;
      mark();
    },
    reveal: async () => {
      await vscode.commands.executeCommand(`${VIEW}.focus`);
      if (!listens) await new Promise<void>((go) => waiting.push(go));
    },
  };
}

/** The page may run our script and nothing else, and may fetch nothing but our style and font. */
function page(webview: vscode.Webview, assets: vscode.Uri): string {
  const nonce = randomBytes(16).toString("base64url");
  const asset = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(assets, name)).toString();
  const policy = [
    "default-src 'none'",
    `style-src ${webview.cspSource}`,
    `font-src ${webview.cspSource} data:`,
    `script-src 'nonce-${nonce}'`,
    "form-action 'none'",
    "base-uri 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="${vscode.env.language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${asset("webview.css")}">
<title>Daiku</title>
</head>
<body>
<div id="root"></div>
<script nonce="${nonce}" src="${asset("webview.js")}"></script>
</body>
</html>`;
}

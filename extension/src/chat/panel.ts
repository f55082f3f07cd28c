// The side panel: its web page, what it is sent, its badge, and whether it is in sight.

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

type Receive = (message: FromPanel) => void;

/** The side panel; `receive` gets every message of its page. */
export const createPanel = (extension: vscode.Uri, receive: Receive): Panel => new SidePanel(extension, receive);

class SidePanel implements Panel {
  readonly #assets: vscode.Uri;
  readonly #receive: Receive;
  readonly #hidden = new vscode.EventEmitter<void>();
  readonly #waitForReady: (() => void)[] = [];
  #view: vscode.WebviewView | undefined;
  #ready = false;
  #questions = 0;

  constructor(extension: vscode.Uri, receive: Receive) {
    this.#assets = vscode.Uri.joinPath(extension, "dist");
    this.#receive = receive;
  }

  get onHidden() {
    return this.#hidden.event;
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    this.#ready = false;
    view.webview.options = { enableScripts: true, enableForms: false, localResourceRoots: [this.#assets] };
    view.webview.onDidReceiveMessage((message: FromPanel) => {
      if (message.type === "ready") this.#ready = true;
      this.#receive(message);
      if (message.type === "ready") for (const go of this.#waitForReady.splice(0)) go();
    });
    // A hidden panel is gone; shown again, it starts anew and says that it is ready.
    view.onDidChangeVisibility(() => {
      if (view.visible) return;
      this.#ready = false;
      this.#hidden.fire();
    });
    view.onDidDispose(() => {
      if (this.#view === view) this.#view = undefined;
      this.#ready = false;
    });
    this.#drawBadge();
    view.webview.html = page(view.webview, this.#assets);
  }

  post(message: ToPanel): void {
    if (this.#ready) void this.#view?.webview.postMessage(message);
  }

  visible(): boolean {
    return this.#view?.visible === true;
  }

  count(waiting: number): void {
    this.#questions = waiting;
    this.#drawBadge();
  }

  async reveal(): Promise<void> {
    await vscode.commands.executeCommand(`${VIEW}.focus`);
    if (!this.#ready) await new Promise<void>((go) => this.#waitForReady.push(go));
  }

  #drawBadge(): void {
    const questions = this.#questions;
    const tooltip = questions === 1 ? t("1 pending request") : t("{0} pending requests", questions);
    if (this.#view) this.#view.badge = questions ? { value: questions, tooltip } : undefined;
  }
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

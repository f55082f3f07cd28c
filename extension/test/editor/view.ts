// The side panel's view as the editor draws it: what the page says, what it is told, whether it is in sight.

import type * as vscode from "vscode";
import type { FromPanel, ToPanel } from "../../src/pure/chat/panel";
import type { Like } from "./like";
import { EventEmitter, Uri } from "./values";
import { views } from "./window";

/** Opens the view with this id; its page listens when it has said that it is ready. */
export function openView(id = "daiku.chat") {
  const [said, shown, gone] = [new EventEmitter<FromPanel>(), new EventEmitter<void>(), new EventEmitter<void>()];
  const told: ToPanel[] = [];
  const webview = {
    ...{ html: "", options: {}, cspSource: "vscode-webview:" },
    onDidReceiveMessage: said.event,
    asWebviewUri: (uri: vscode.Uri) => Uri.parse(String(uri)),
    postMessage: async (message: ToPanel) => told.push(message) > 0,
  } satisfies Like<vscode.Webview>;
  const view = {
    ...{ webview, visible: true as boolean, badge: undefined as vscode.ViewBadge | undefined },
    ...{ onDidChangeVisibility: shown.event, onDidDispose: gone.event },
  } satisfies Like<vscode.WebviewView>;
  const provider = views.get(id);
  if (!provider) throw new Error(`nobody draws ${id}`);
  void provider.resolveWebviewView(view as unknown as vscode.WebviewView, undefined as never, undefined as never);
  return {
    told,
    view,
    say: (message: FromPanel) => said.fire(message),
    see: (visible: boolean) => {
      view.visible = visible;
      shown.fire();
    },
    close: () => gone.fire(),
  };
}

import * as vscode from "vscode";

export function activate(context: vscode.ExtensionContext): void {
  context.subscriptions.push(
    vscode.commands.registerCommand("daiku.newChat", () => vscode.window.showInformationMessage("Daiku is here")),
  );
}

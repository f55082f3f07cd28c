// Lenses over functions, off by default: explain, write tests.

import * as vscode from "vscode";
import { toWireRange } from "../editor/ranges";
import { t } from "../l10n";

const SETTING = "daiku.codeLens";
const KINDS = new Set([vscode.SymbolKind.Function, vscode.SymbolKind.Method, vscode.SymbolKind.Constructor]);

/** Shows lenses while the setting is on, until it is disposed of. */
export function watchLenses(): vscode.Disposable {
  let provider: vscode.Disposable | undefined;
  const follow = () => {
    const wanted = vscode.workspace.getConfiguration().get<boolean>(SETTING) === true;
    if (wanted) provider ??= vscode.languages.registerCodeLensProvider([{ scheme: "file" }], { provideCodeLenses });
    else {
      provider?.dispose();
      provider = undefined;
    }
  };
  follow();
  return vscode.Disposable.from(
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration(SETTING) && follow()),
    { dispose: () => provider?.dispose() },
  );
}

async function provideCodeLenses({ uri }: vscode.TextDocument): Promise<vscode.CodeLens[]> {
  const found = await vscode.commands.executeCommand<(vscode.DocumentSymbol | vscode.SymbolInformation)[] | undefined>(
    "vscode.executeDocumentSymbolProvider",
    uri,
  );
  return functions(found ?? []).flatMap((range) => {
    const top = new vscode.Range(range.start, range.start);
    const args = [{ uri: uri.toString(), range: toWireRange(range) }];
    return [
      new vscode.CodeLens(top, { title: t("Explain"), command: "daiku.explain", arguments: args }),
      new vscode.CodeLens(top, { title: t("Write Tests"), command: "daiku.writeTests", arguments: args }),
    ];
  });
}

/** Where the functions are, nested ones included. */
function functions(symbols: readonly (vscode.DocumentSymbol | vscode.SymbolInformation)[]): vscode.Range[] {
  return symbols.flatMap((symbol) => [
    ...(KINDS.has(symbol.kind) ? ["location" in symbol ? symbol.location.range : symbol.range] : []),
    ...("children" in symbol ? functions(symbol.children) : []),
  ]);
}

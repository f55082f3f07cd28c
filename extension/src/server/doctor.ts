// The doctor: what the server and the editor know of this machine, as a page with a button for what can be mended.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { t } from "../l10n";
import {
  type DoctorAct,
  type DoctorPressed,
  type DoctorWords,
  doctorPage,
  doctorText,
  type PageFinding,
} from "../pure/server/doctorPage";
import { failureOf, request } from "./rpc";
import type { Server } from "./server";

type Asked = Pick<Server, "client" | "state">;

const COMMANDS: Partial<Record<DoctorAct, string>> = {
  key: "daiku.setApiKey",
  model: "daiku.selectModel",
  settings: "daiku.openSettings",
  trust: "workbench.trust.manage",
  log: "daiku.showLog",
  restart: "daiku.restartServer",
};

let panel: vscode.WebviewPanel | undefined;

/** Opens the page, or looks again where it is open. */
export async function showDoctor(server: Asked): Promise<void> {
  if (!panel) {
    const made = vscode.window.createWebviewPanel("daiku.doctor", words(0).title, vscode.ViewColumn.Active, {
      enableScripts: true,
      localResourceRoots: [],
    });
    panel = made;
    made.onDidDispose(() => {
      if (panel === made) panel = undefined;
    });
    made.webview.onDidReceiveMessage((pressed: DoctorPressed) => press(server, pressed));
  }
  panel.reveal();
  draw([...editorFindings(), finding({ area: "daiku", state: "note", what: t("Waiting for the server…") })]);
  draw([...editorFindings(), ...(await ask(server))]);
}

let shown: readonly PageFinding[] = [];

function draw(findings: readonly PageFinding[]): void {
  shown = findings;
  if (!panel) return;
  const bad = findings.filter(({ state }) => state === "bad").length;
  const page = { words: words(bad), findings, language: vscode.env.language, nonce: randomBytes(16).toString("hex") };
  panel.webview.html = doctorPage(page);
}

async function press(server: Asked, pressed: DoctorPressed): Promise<void> {
  if ("command" in pressed) {
    // Only what the server offers, and only written down: it runs when the person says so.
    if (!shown.some(({ command }) => command === pressed.command)) return;
    const terminal = vscode.window.createTerminal("Daiku");
    terminal.show();
    terminal.sendText(pressed.command, false);
    return;
  }
  if (pressed.act === "look") return showDoctor(server);
  if (pressed.act === "copy") {
    const bad = shown.filter(({ state }) => state === "bad").length;
    await vscode.env.clipboard.writeText(doctorText({ words: words(bad), findings: shown }));
    vscode.window.setStatusBarMessage(t("Copied"), 3000);
    return;
  }
  const command = COMMANDS[pressed.act];
  if (!command) return;
  await vscode.commands.executeCommand(command);
  if (pressed.act === "restart") await showDoctor(server);
}

const finding = (over: Partial<PageFinding> & Pick<PageFinding, "area" | "what">): PageFinding => ({
  ...{ state: "good", mend: "", command: "" },
  ...over,
});

/** What the editor knows by itself. */
function editorFindings(): PageFinding[] {
  const editor = `VS Code ${vscode.version}, ${process.platform}-${process.arch}, ${vscode.env.language}`;
  const folders = vscode.workspace.workspaceFolders?.map(({ uri }) => uri.fsPath).join(", ");
  const workspace = finding({ area: "settings", what: t("Workspace: {0}", folders ?? t("none")) });
  const untrusted: Partial<PageFinding> = vscode.workspace.isTrusted
    ? {}
    : {
        state: "note",
        mend: t(
          "This workspace is not trusted. You can chat, but Daiku does not run commands or read workspace settings.",
        ),
        action: "trust",
      };
  return [finding({ area: "daiku", what: editor }), { ...workspace, ...untrusted }];
}

async function ask(server: Asked): Promise<PageFinding[]> {
  try {
    const client = await server.client();
    return (await request(client, "daiku/doctor", {})).findings;
  } catch (error) {
    const { message, hint } = failureOf(error) ?? { message: t("Stopped"), hint: "" };
    const what = server.state.message ?? message;
    const mend = server.state.hint ?? hint;
    return [{ ...finding({ area: "daiku", state: "bad", what, mend }), action: "restart" }];
  }
}

const words = (bad: number): DoctorWords => ({
  title: t("Daiku: Diagnostics"),
  summary: bad === 0 ? t("No problems found.") : t("Problems: {0}", bad),
  areas: {
    daiku: "Daiku",
    programs: t("Programs"),
    settings: t("Workspace and settings"),
    sandbox: t("Sandbox"),
    models: t("Models"),
    mcp: t("MCP servers"),
    tools: t("Tools"),
    memory: t("Memory"),
    trace: t("Traces"),
    work: t("Work items"),
  },
  states: { good: t("OK"), note: t("Note"), bad: t("Problem") },
  acts: {
    key: t("Set API Key"),
    model: t("Select Model"),
    settings: t("Settings"),
    trust: t("Manage Trust"),
    log: t("Show Log"),
    restart: t("Restart Server"),
    look: t("Run Again"),
    copy: t("Copy Diagnostics"),
  },
  terminal: t("Insert into Terminal"),
});

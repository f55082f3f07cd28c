// The command that starts the server: the person's own, a developer's, or the environment made from the package.

import { existsSync, mkdirSync } from "node:fs";
import * as vscode from "vscode";
import { t } from "../l10n";
import type { ServerState } from "../pure/chat/panel";
import { ensureEnvironment, SetupError } from "./environment";
import { ownSetting } from "./settings";

export interface Command {
  command: string;
  args: string[];
  cwd: string;
}

interface Needs {
  /** The extension's own folder, and where it may keep things. */
  extension: vscode.Uri;
  storage: string;
  log: Pick<vscode.LogOutputChannel, "info">;
  /** Told how far an installation is. */
  become: (state: ServerState) => void;
  signal: AbortSignal;
}

/** While something takes long, so often is said how long. */
const TICK_MS = 1000;
const MODULE = ["-I", "-X", "utf8", "-m", "daiku", "lsp"];

/**
 * Nothing of it comes from a workspace, and the working folder is never one: its files could shadow modules.
 * The environment is left alone: the commands that the server runs for the person inherit it. Throws SetupError.
 */
export async function serverCommand(needs: Needs): Promise<Command> {
  const { storage, log } = needs;
  mkdirSync(storage, { recursive: true });
  const set = ownSetting<string[]>("server.command");
  const developers = process.env.DAIKU_DEV_SERVER;
  const own = set?.length ? set : developers ? [developers, "lsp"] : undefined;
  const [command = "", ...args] = own ?? [await install(needs), ...MODULE];
  if (own && command.includes("/") && !existsSync(command)) {
    throw new SetupError(t("Not found: {0}", command), t("Check the daiku.server.command setting."));
  }
  log.info(`server command: ${[command, ...args].join(" ")}`);
  return { command, args, cwd: storage };
}

/** The Python of the packaged server's environment; made with a notification that says how far it is. */
async function install({ extension, storage, log, become, signal }: Needs): Promise<string> {
  const bundle = vscode.Uri.joinPath(extension, "server").fsPath;
  const workspace = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const options = { location: vscode.ProgressLocation.Notification, title: "Daiku" };
  const begun = Date.now();
  let [words, part] = ["", 0];
  let shown: vscode.Progress<{ message?: string; increment?: number }> | undefined;
  /** With the time that has gone by: so that a person sees that it goes on. */
  const tell = () => {
    const seconds = Math.round((Date.now() - begun) / 1000);
    const message = t("{0} {1} s (first time only; about a minute, longer on a slow network)", words, seconds);
    become({ phase: "installing", message });
    shown?.report({ message });
  };
  const report = (message: string, done: number) => {
    const increment = done - part;
    [words, part] = [message, done];
    if (!shown) {
      void vscode.window.withProgress(options, (progress) => {
        shown = progress;
        return made.then(
          () => undefined,
          () => undefined,
        );
      });
    }
    tell();
    shown?.report({ increment });
  };
  const clock = setInterval(() => words && tell(), TICK_MS);
  const made = ensureEnvironment({ bundle, storage, workspace, report, log: (line) => log.info(line), signal });
  return made.finally(() => clearInterval(clock));
}

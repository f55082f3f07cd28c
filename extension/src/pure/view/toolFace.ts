// How a tool call is introduced: an icon, what is done, and to what.

import type { JsonObject } from "../../contract.gen";
import { say } from "../text/words";

interface ToolFace {
  /** A codicon. */
  icon: string;
  /** To be translated. */
  title: string;
  /** A path, a command, a pattern: shown as code. */
  subject: string;
  /** The workspace path that the subject names, if it can be opened. */
  path?: string;
  line?: number;
}

type Args = (name: string) => string;

const FACES: Record<string, [icon: string, title: string, subject?: (arg: Args) => string]> = {
  "files/read": ["file", say("Read"), (arg) => arg("path") + lines(arg)],
  "files/write": ["new-file", say("Write"), (arg) => arg("path")],
  "files/edit": ["edit", say("Edit"), (arg) => arg("path")],
  "files/patch": ["diff", say("Patch"), (arg) => patched(arg("patch"))],
  "files/move": ["arrow-swap", say("Move"), (arg) => `${arg("path")} → ${arg("to")}`],
  "files/delete": ["trash", say("Delete"), (arg) => arg("path")],
  "files/list": ["list-tree", say("List"), (arg) => arg("path") || arg("glob") || "."],
  "search/text": ["search", say("Search"), (arg) => arg("pattern") + place(arg)],
  "search/symbols": ["symbol-method", say("Find symbol"), (arg) => arg("name")],
  "search/map": ["type-hierarchy", say("Map the repository")],
  "shell/run": ["terminal", say("Run"), (arg) => arg("command")],
  "shell/output": ["terminal", say("Read output"), (arg) => arg("id")],
  "shell/kill": ["debug-stop", say("End process"), (arg) => arg("id")],
  "git/status": ["source-control", say("Git status")],
  "git/diff": ["diff-multiple", say("Git diff"), (arg) => arg("path") || arg("ref")],
  "git/log": ["history", say("Git log"), (arg) => arg("path")],
  "git/commit": ["git-commit", say("Commit"), (arg) => arg("message").split("\n")[0] ?? ""],
  "editor/diagnostics": ["warning", say("Check problems"), (arg) => arg("path")],
  "editor/definition": ["symbol-reference", say("Go to definition"), (arg) => arg("path") + lines(arg)],
  "editor/references": ["references", say("Find references"), (arg) => arg("path") + lines(arg)],
  "web/search": ["globe", say("Search the web"), (arg) => arg("query")],
  "web/fetch": ["link-external", say("Read web page"), (arg) => arg("url")],
  "plan/propose": ["checklist", say("Plan"), (arg) => arg("goal")],
  "plan/update_step": ["pass", say("Update step"), (arg) => arg("status")],
  "plan/get": ["checklist", say("Look at the plan")],
  "plan/approve": ["pass-filled", say("Approve the plan")],
  "task/generate_list": ["tasklist", say("List tasks")],
  "task_loop/run": ["run-all", say("Work through the tasks")],
  "playbook/search": ["book", say("Look in the playbook"), (arg) => arg("query")],
  "agent/handoff": ["organization", say("Hand over"), (arg) => arg("agent")],
  "user/ask": ["question", say("Ask"), (arg) => arg("question")],
};

/** The face of a call; a tool that is not ours shows its own name and its shortest telling argument. */
export function toolFace(tool: string, args: JsonObject): ToolFace {
  const arg: Args = (name) => {
    const value = args[name];
    return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
  };
  const [icon, title, subject] = FACES[tool] ?? ["plug", tool, () => firstText(args)];
  const path = /^(files|editor)\//.test(tool) && tool !== "files/list" ? arg("path") : "";
  const line = Number(args.start_line ?? args.line);
  return {
    icon,
    title,
    subject: subject?.(arg) ?? "",
    ...(path ? { path } : {}),
    ...(path && line > 0 ? { line } : {}),
  };
}

function lines(arg: Args): string {
  const [start, end] = [arg("start_line") || arg("line"), arg("end_line")];
  if (!start && !end) return "";
  return end && end !== start ? `:${start || 1}–${end}` : `:${start}`;
}

function place(arg: Args): string {
  const where = arg("path") || arg("glob");
  return where ? ` · ${where}` : "";
}

function patched(patch: string): string {
  const names = [...patch.matchAll(/^(?:\+\+\+ (?:b\/)?|\*\*\* (?:Add|Update|Delete) File: )(\S.*)$/gm)].map(
    (m) => m[1],
  );
  return [...new Set(names)].join(", ");
}

function firstText(args: JsonObject): string {
  const texts = Object.values(args).filter((value): value is string => typeof value === "string" && value !== "");
  return texts.sort((a, b) => a.length - b.length)[0] ?? "";
}

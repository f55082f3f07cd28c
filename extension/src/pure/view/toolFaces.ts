// The faces of Daiku's tools: an icon, what is done, and which of the arguments says to what.

import { say } from "../text/words";

interface Face {
  /** A codicon. */
  icon: string;
  /** To be translated. */
  title: string;
  /**
   * What it is done to, made of the call's arguments: `{path}` is one, `{path|glob}` the first that is there, a part in
   * brackets is left out where it is empty. `{lines}` are the lines that are meant, `{files}` the files that a patch names,
   * `{agents}` those to whom requests go.
   */
  subject: string;
}

const face = (icon: string, title: string, subject = ""): Face => ({ icon, title, subject });

export const TOOL_FACES: Readonly<Record<string, Face>> = {
  "files/read": face("file", say("Read"), "{path}{lines}"),
  "files/write": face("new-file", say("Write"), "{path}"),
  "files/edit": face("edit", say("Edit"), "{path}"),
  "files/patch": face("diff", say("Patch"), "{files}"),
  "files/move": face("arrow-swap", say("Move"), "{path} → {to}"),
  "files/delete": face("trash", say("Delete"), "{path}"),
  "files/list": face("list-tree", say("List"), "{path|glob|.}"),
  "search/text": face("search", say("Search"), "{pattern}[ · {path|glob}]"),
  "search/symbols": face("symbol-method", say("Find symbol"), "{name}"),
  "search/map": face("type-hierarchy", say("Map the repository")),
  "shell/run": face("terminal", say("Run"), "{command}"),
  "shell/output": face("terminal", say("Read output"), "{id}"),
  "shell/kill": face("debug-stop", say("End process"), "{id}"),
  "git/status": face("source-control", say("Git status")),
  "git/diff": face("diff-multiple", say("Git diff"), "{path|ref}"),
  "git/log": face("history", say("Git log"), "{path}"),
  "git/commit": face("git-commit", say("Commit"), "{message}"),
  "editor/diagnostics": face("warning", say("Check problems"), "{path}"),
  "editor/definition": face("symbol-reference", say("Go to definition"), "{path}{lines}"),
  "editor/references": face("references", say("Find references"), "{path}{lines}"),
  "web/search": face("globe", say("Search the web"), "{query}"),
  "web/fetch": face("link-external", say("Read web page"), "{url}"),
  "web/research": face("telescope", say("Research the web"), "{queries}"),
  "plan/propose": face("checklist", say("Plan"), "{goal}"),
  "plan/update_step": face("pass", say("Update step"), "{status}"),
  "plan/get": face("checklist", say("Look at the plan")),
  "plan/approve": face("pass-filled", say("Approve the plan")),
  "task/generate_list": face("tasklist", say("List tasks")),
  "task_loop/run": face("run-all", say("Work through the tasks")),
  "agent/handoff": face("organization", say("Hand over"), "{agent}"),
  "agent/parallel": face("organization", say("Hand over side by side"), "{agents}"),
  "user/ask": face("question", say("Ask"), "{question}"),
  "mcp/resources": face("plug", say("List MCP resources"), "{server}"),
  "mcp/read": face("plug", say("Read MCP resource"), "{uri}"),
  "mcp/prompts": face("plug", say("List MCP prompts"), "{server}"),
  "mcp/prompt": face("plug", say("Read MCP prompt"), "{name}"),
};

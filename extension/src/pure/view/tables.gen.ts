// GENERATED from the server's tables of tools, agents and events by .dev/gen.py; do not edit, run `npm run gen`.

interface Face {
  /** A codicon. */
  icon: string;
  /** What is done; to be translated. */
  title: string;
  /** What it is done to, made of the call's arguments, see `toolFace.ts`. */
  subject: string;
}

export interface Line {
  /** A codicon. */
  icon: string;
  /** To be translated; `{name}` is a field of the event. */
  text: string;
  /** Another text where a field of the event has this value. */
  cases?: readonly { field: string; value: string; text: string }[];
}

/** Tools by name. */
export const TOOL_FACES: Readonly<Record<string, Face>> = {
  "files/read": { icon: "file", title: "Read", subject: "{path}{lines}" },
  "files/list": { icon: "list-tree", title: "List", subject: "{path|glob|.}" },
  "files/write": { icon: "new-file", title: "Write", subject: "{path}" },
  "files/edit": { icon: "edit", title: "Edit", subject: "{path}" },
  "files/patch": { icon: "diff", title: "Patch", subject: "{files}" },
  "files/move": { icon: "arrow-swap", title: "Move", subject: "{path} → {to}" },
  "files/delete": { icon: "trash", title: "Delete", subject: "{path}" },
  "search/text": { icon: "search", title: "Search", subject: "{pattern}[ · {path|glob}]" },
  "search/symbols": { icon: "symbol-method", title: "Find symbol", subject: "{name}" },
  "search/map": { icon: "type-hierarchy", title: "Map repository", subject: "" },
  "editor/diagnostics": { icon: "warning", title: "Check problems", subject: "{path}" },
  "editor/definition": { icon: "symbol-reference", title: "Go to definition", subject: "{path}{lines}" },
  "editor/references": { icon: "references", title: "Find references", subject: "{path}{lines}" },
  "shell/run": { icon: "terminal", title: "Run", subject: "{command}" },
  "shell/output": { icon: "terminal", title: "Read output", subject: "{id}" },
  "shell/kill": { icon: "debug-stop", title: "Stop process", subject: "{id}" },
  "git/status": { icon: "source-control", title: "Git status", subject: "" },
  "git/diff": { icon: "diff-multiple", title: "Git diff", subject: "{paths|ref}" },
  "git/log": { icon: "history", title: "Git log", subject: "{paths|ref}" },
  "git/commit": { icon: "git-commit", title: "Commit", subject: "{message}" },
  "web/search": { icon: "globe", title: "Search the web", subject: "{query}" },
  "web/fetch": { icon: "link-external", title: "Read web page", subject: "{url}" },
  "web/research": { icon: "telescope", title: "Research the web", subject: "{queries}" },
  "todo/write": { icon: "checklist", title: "To-do list", subject: "" },
  "plan/propose": { icon: "checklist", title: "Plan", subject: "{goal}" },
  "plan/update_step": { icon: "pass", title: "Update step", subject: "{status}" },
  "plan/get": { icon: "checklist", title: "View plan", subject: "" },
  "plan/approve": { icon: "pass-filled", title: "Approve plan", subject: "" },
  "task/generate_list": { icon: "tasklist", title: "List tasks", subject: "" },
  "task_loop/run": { icon: "run-all", title: "Run tasks", subject: "" },
  "agent/handoff": { icon: "organization", title: "Hand off", subject: "{agent}" },
  "agent/parallel": { icon: "organization", title: "Hand off in parallel", subject: "{agents}" },
  "agent/explore": { icon: "telescope", title: "Explore", subject: "{questions}" },
  "document/references": { icon: "references", title: "Look up references", subject: "" },
  "document/similarity": { icon: "compare-changes", title: "Check similarity", subject: "" },
  "document/evaluate": { icon: "checklist", title: "Evaluate", subject: "" },
  "document/apply": { icon: "edit", title: "Revise", subject: "{path}" },
  "user/ask": { icon: "question", title: "Ask", subject: "{question}" },
  "tools/find": { icon: "search", title: "Find tool", subject: "{query}" },
  "tools/call": { icon: "plug", title: "Call tool", subject: "{tool}" },
  "mcp/resources": { icon: "plug", title: "List MCP resources", subject: "{server}" },
  "mcp/read": { icon: "plug", title: "Read MCP resource", subject: "{uri}" },
  "mcp/prompts": { icon: "plug", title: "List MCP prompts", subject: "{server}" },
  "mcp/prompt": { icon: "plug", title: "Read MCP prompt", subject: "{name}" },
  "memory/remember": { icon: "bookmark", title: "Remember", subject: "{text}" },
  "memory/search": { icon: "history", title: "Search memory", subject: "{query}" },
  "memory/forget": { icon: "trash", title: "Forget", subject: "{id}" },
  "playbook/search": { icon: "lightbulb", title: "Search playbook", subject: "{query}" },
};

/** Agents by name; to be translated. */
export const AGENT_LABELS: Readonly<Record<string, string>> = {
  coordinator: "Coordinator",
  planner: "Planner",
  researcher: "Researcher",
  explorer: "Explorer",
  coder: "Coder",
  runner: "Runner",
  reporter: "Reporter",
  committer: "Committer",
  team: "Team",
  generator: "Generator",
  document: "Document writer",
  sections: "Section selector",
  draft: "Drafter",
  style: "Style editor",
  reference: "Reference finder",
  guard: "Similarity checker",
  eval: "Evaluator",
  reflection: "Reflection",
  lessons: "Lesson writer",
  reflector: "Reflector",
  curator: "Curator",
  tasks: "Task planner",
  task_loop: "Task runner",
  task_report: "Reporter",
  worktree: "Merger",
};

/** Events that are shown as one line, or not at all. */
export const EVENT_LINES = {
  agent_start: null,
  agent_end: null,
  plan_deleted: { icon: "trash", text: "Plan deleted: {name}" },
  bullet: { icon: "lightbulb", text: "Learned: {content}", cases: [
      { field: "change", value: "proposed", text: "Lesson pending review in the Playbook view: {content}" },
    ] },
  reflected: null,
} satisfies Record<string, Line | null>;

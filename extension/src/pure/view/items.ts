// The items of a conversation as the panel shows them.

import type {
  ApprovalAsked,
  ApprovalGiven,
  Chunk,
  ContextItem,
  Edit,
  Failure,
  InputAsked,
  JsonObject,
  Lesson,
  Plan,
  Report,
  Restored,
  RunFinished,
  RunStarted,
  TodoItem,
  Usage,
} from "../../contract.gen";

export interface Common {
  /** Stable for the life of the session: the seq of the chunk that made the item. */
  key: number;
  run: string;
  agent: string;
  /** How deep the run is nested under the person's own: 0 is what the person started. */
  depth: number;
  time: string;
}

export interface UserItem extends Common {
  kind: "user";
  text: string;
  context: ContextItem[];
  images: number;
  /** Said while a run was already at work. */
  steering: boolean;
  /** So many replies begin before one is made from it; 0 or absent: it has been read. */
  unread?: number;
}

export interface TextItem extends Common {
  kind: "text" | "thinking";
  text: string;
  done: boolean;
  /** When it was closed; with `time` the duration of a thought. */
  ended?: string;
  /** The seq of the message that it is part of: a fork from here holds what came up to it. */
  said?: number;
  /** Said on the way to a call: no answer. */
  between?: boolean;
  /** The draft of a reply that was cut off: no answer. */
  partial?: boolean;
  /** Says only which call comes next, where that call is shown: the team's own words. */
  quiet?: boolean;
  /** Says at length what a report above it says: shown when it is asked for. */
  folded?: boolean;
}

export interface ToolItem extends Common {
  kind: "tool";
  id: string;
  tool: string;
  args: JsonObject;
  /** What the tool has printed so far; its middle is cut where it is long. */
  output: string;
  /** `refused`: by Daiku's own rules; `unasked`: nobody was there; `skipped`: never begun. */
  status: "running" | "ok" | "failed" | "rejected" | "refused" | "unasked" | "interrupted" | "cancelled" | "skipped";
  result: string;
  durationMs: number;
  untrusted: boolean;
  /** Of a command that has ended. */
  exitCode?: number;
  decision?: ApprovalGiven["decision"];
  edits: Edit[];
}

export interface ApprovalItem extends Common {
  kind: "approval";
  ask: ApprovalAsked;
  decision?: ApprovalGiven["decision"] | "expired";
  feedback?: string;
}

export interface QuestionItem extends Common {
  kind: "question";
  ask: InputAsked;
  answer?: string;
  expired: boolean;
}

interface EditItem extends Common {
  kind: "edit";
  edit: Edit;
}

interface PlanItem extends Common {
  kind: "plan";
  plan: Plan;
}

/** What a run keeps as its list of what is to do, as it stands now. */
interface TodoListItem extends Common {
  kind: "todo";
  todo: readonly TodoItem[];
}

/** What the playbook says of a run's request; `used` are the ids that it cited, once it has ended. */
export interface LessonsItem extends Common {
  kind: "lessons";
  lessons: readonly Lesson[];
  used?: readonly string[];
}

/** A nested run, with what it handed back once it has. */
export interface HandoffItem extends Common {
  kind: "handoff";
  from: string;
  to: string;
  request: string;
  /** The nested run. */
  child: string;
  /** The step of the plan that it works for. */
  step: { n: number; name: string } | undefined;
  result?: string;
  problem?: string;
  report?: Report;
}

export interface NoticeItem extends Common {
  kind: "notice";
  level: "info" | "warning" | "error";
  text: string;
  /** A call of a model is made again, for the so-manieth time. */
  attempt?: number;
}

interface ErrorItem extends Common {
  kind: "error";
  error: Failure;
}

/** An event that is one line: `text` is to be translated, and `{name}` in it is one of `fields`. */
interface LineItem extends Common {
  kind: "line";
  icon: string;
  text: string;
  fields: JsonObject;
}

/** An event with a look of its own, as it came. */
interface EventItem extends Common {
  kind: "event";
  event: Chunk;
}

interface RestoredItem extends Common {
  kind: "restored";
  restored: Restored;
  /** What had been undone or rejected was brought back: the files hold Daiku's changes again. */
  back: boolean;
}

export interface EndItem extends Common {
  kind: "end";
  status: RunFinished["status"];
  /** Why the run's record does not support that its work is done, each as a clause. */
  reasons: readonly string[];
  /** Files were changed, and no test, build, or linter passed after the last change. */
  unchecked: boolean;
  usage: Usage;
  seconds: number;
  /** The checkpoint from which the run's changes are undone all together, and how many files they are in. */
  changed: { checkpointId: string; files: number } | undefined;
}

export type Item =
  | UserItem
  | TextItem
  | ToolItem
  | ApprovalItem
  | QuestionItem
  | EditItem
  | PlanItem
  | TodoListItem
  | LessonsItem
  | HandoffItem
  | NoticeItem
  | ErrorItem
  | LineItem
  | EventItem
  | RestoredItem
  | EndItem;

/** A run that the person started. `open` means: no end of it was seen. */
export interface RunView {
  id: string;
  status: "open" | RunFinished["status"];
  mode: RunStarted["mode"];
  model: string;
  started: string;
  /** It was a request to chat: it can be made once more as it was. */
  repeatable: boolean;
}

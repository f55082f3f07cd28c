// The messages between the extension and its panel.

import type {
  ApprovalGiven,
  Chunk,
  ContextItem,
  EarlierChunks,
  ModelsResult,
  RunStarted,
  Session,
  StepInput,
} from "../../contract.gen";

export type Mode = RunStarted["mode"];
/** The approval levels that the panel offers. */
export type Approvals = "ask" | "edits" | "sandbox";
/** The values of the setting `daiku.review`, by approval level. */
export const REVIEW: Record<Approvals, string> = { ask: "before", edits: "after", sandbox: "sandbox" };

/** Returns the approval level of a value of `daiku.review`; anything unknown asks. */
export const approvalsOf = (review: string | undefined): Approvals =>
  review === "sandbox" ? "sandbox" : review === "after" ? "edits" : "ask";

/** A person's own pointer to something, with the name under which the panel shows it. */
export interface Attachment {
  item: ContextItem;
  label: string;
  /** Where it comes from, in grey. */
  detail?: string;
  icon: string;
}

type ServerPhase = "off" | "installing" | "starting" | "ready" | "failed";

export interface ServerState {
  phase: ServerPhase;
  /** What is going on or wrong; shown to the person. */
  message?: string;
  hint?: string;
}

export interface Situation {
  server: ServerState;
  trusted: boolean;
  /** Chosen by the person; empty: as the settings say. */
  model: string;
  mode: Mode;
  approvals?: Approvals;
  models?: ModelsResult;
  folder: boolean;
}

/** The model that a request would use, `provider/name`; empty where none can be. */
export function modelInUse({ model, models }: Situation): string {
  const id = model || models?.selected || "";
  // The editor offers itself as a provider also where it has no model to lend.
  const lends = models?.models.some((offer) => offer.provider === "editor") ?? true;
  return id.split("/")[0] === "editor" && !lends ? "" : id;
}

/** Whether a script plays the model: it uses no tokens of anybody's, and answers only what stands in it. */
export const isScripted = (model: string): boolean => model.startsWith("scripted/");

export type ToPanel =
  | { type: "hello"; situation: Situation; words: Record<string, string> | undefined; locale: string }
  | { type: "situation"; situation: Situation }
  /** Replaces what is shown. `working`: a run of this session is under way in this window. */
  | {
      type: "session";
      session: Session | undefined;
      chunks: readonly Chunk[];
      working: boolean;
      earlier?: EarlierChunks;
    }
  /** What lies before the first chunk that the panel has, and what is still left before that. */
  | { type: "earlier"; session: string; chunks: readonly Chunk[]; earlier?: EarlierChunks }
  | { type: "chunks"; session: string; chunks: readonly Chunk[] }
  | { type: "working"; session: string; working: boolean }
  | { type: "sessions"; query: string; sessions: readonly Session[]; current: string | undefined }
  | { type: "candidates"; query: string; candidates: readonly Attachment[] }
  | { type: "attach"; attachment: Attachment }
  | { type: "prefill"; text: string; attachments: readonly Attachment[] }
  | { type: "focus"; what: "composer" | "history" | "approval" }
  /** Scrolls to a call of a tool, otherwise to what begins at this number. */
  | { type: "place"; seq: number; callId: string }
  | { type: "failed"; kind: string; message: string; hint: string; text?: string };

export type FromPanel =
  | { type: "ready" }
  | { type: "send"; text: string; context: readonly ContextItem[] }
  | { type: "steer"; text: string }
  | { type: "stop" }
  | { type: "earlier" }
  | {
      type: "approve";
      run: string;
      approvalId: string;
      decision: ApprovalGiven["decision"];
      feedback?: string;
      /** Of an edit only these hunks, counted from 0 in the order of the preview. */
      hunks?: readonly number[];
    }
  | { type: "answer"; run: string; inputId: string; text: string }
  | { type: "resume"; run: string }
  /** The request of a run once more, as it was made. */
  | { type: "retry"; run: string }
  /** What was said in a run, to be said otherwise: in a new chat that holds what came before it. */
  | { type: "rephrase"; run: string }
  | { type: "planStart"; planId: string }
  | { type: "planUpdate"; planId: string; steps: readonly StepInput[] }
  | { type: "undo"; checkpointId: string }
  | { type: "openDiff"; path: string; diff: string }
  | { type: "openFile"; path: string; line?: number }
  | { type: "openLink"; href: string }
  /** A lesson, by its id, in the view of the playbook. */
  | { type: "openLesson"; id: string }
  | { type: "copy"; text: string }
  | { type: "insert"; text: string }
  | { type: "setMode"; mode: Mode }
  | { type: "setApprovals"; approvals: Approvals }
  | { type: "sessions"; query: string }
  | { type: "openSession"; session: string }
  | { type: "deleteSession"; session: string }
  | { type: "forkSession"; session: string; atSeq: number }
  | { type: "candidates"; query: string }
  | { type: "command"; command: PanelCommand };

/** The only commands that the panel can have run. */
export const PANEL_COMMANDS = [
  "daiku.newChat",
  "daiku.selectModel",
  "daiku.setApiKey",
  "daiku.showLog",
  "daiku.doctor",
  "daiku.restartServer",
  "daiku.openSettings",
  "daiku.redo",
  "daiku.openChanges",
  "workbench.trust.manage",
] as const;
type PanelCommand = (typeof PANEL_COMMANDS)[number];

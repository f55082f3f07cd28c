// GENERATED from server/daiku/api and domain/events.py by .dev/gen.py; do not edit, run `npm run gen`.

/** Any JSON object. */
export type JsonObject = { [key: string]: unknown };

/** A change to accept; `content` is the text as edited by the user, absent if unedited. */
export interface AcceptedDelta {
  id: string;
  content?: string | null;
}

/** End of a run's agent: written before `run_finished`, with any status. `usage` excludes nested agents. */
export interface AgentEnd {
  usage: Usage;
}

export interface AgentInfo {
  name: string;
  description: string;
  tools: string[];
  origin: string;
}

/** Start of a run's agent: written once, with `run_started`. `model` is the requested model, or empty. */
export interface AgentStart {
  model: string;
}

export interface AgentsResult {
  agents: AgentInfo[];
}

export interface AnswerParams {
  runId: string;
  inputId: string;
  text: string;
}

/** An approval request. `preview` is exactly what will happen (a diff or the command). `remember` describes the scope of "always"; empty if it cannot be remembered. */
export interface ApprovalAsked {
  approvalId: string;
  kind: "edit" | "command" | "network" | "mcp" | "plan" | "read" | "memory";
  tool: string;
  args: JsonObject;
  preview: string;
  why: string;
  callId: string;
  remember: string;
  fromServer: boolean;
  hunks: number;
}

export interface ApprovalGiven {
  approvalId: string;
  decision: "allow_once" | "allow_always" | "reject_once" | "reject_always";
  feedback?: string;
  unattended: boolean;
  hunks?: number[];
}

export interface ApproveParams {
  runId: string;
  approvalId: string;
  decision: "allow_once" | "allow_always" | "reject_once" | "reject_always";
  feedback?: string | null;
  hunks?: number[] | null;
}

/** Input of a stage: the request, and the handovers of earlier stages. The coder gets plan, step and findings (R0.102); the runner also the edits; the reporter everything. */
export interface Brief {
  request: string;
  plan?: Plan;
  stepId: string;
  findings?: Findings;
  edits?: EditsMade;
  commands?: CommandsRun;
  proofs: Proof[];
  said: string[];
  code: string;
  document?: Document;
  files: string;
  lessons: Lesson[];
}

/** A search hit with its vector, BM25, and combined score (0 to 1; B3.2). `resting`: the bullet matches, but its confidence is below the threshold, so no run receives it. */
export interface BulletHit {
  bullet: PlaybookBullet;
  vectorScore: number;
  bm25Score: number;
  combinedScore: number;
  resting: boolean;
}

/** Evidence of one run on a bullet, and its place in the session. `version` is the version of the text that the run received (0: unknown). `counted` is False if it was about a text with another meaning. */
export interface BulletObservation {
  verdict: "helpful" | "harmful" | "neutral";
  why: "not_cited" | "nothing_shown" | "run_cancelled" | "run_failed" | "run_limited" | "run_looped" | "unclear" | "command_passed" | "command_failed" | "command_missing" | "command_replaced" | "command_refused" | "acceptance_met" | "checks_passed" | "edits_kept" | "edits_accepted" | "edits_refused" | "edits_rejected" | "edits_restored" | "praised" | "objected" | "model_judged" | "";
  place: PlaybookPlace;
  version: number;
  counted: boolean;
}

/** A Reflector's verdict on one bullet that a run received. */
export interface BulletTag {
  id: string;
  tag: "helpful" | "harmful" | "neutral";
}

export interface CallPart {
  type: "call";
  callId: string;
  name: string;
  input: JsonObject;
}

export interface CallPartInput {
  type?: "call";
  callId: string;
  name: string;
  input: JsonObject;
}

/** One change of a change map (R1.95). `start` and `end` are code points of the OLD text, half-open, sorted, without overlap (C1.8). An insert has `end == start` and a `text`, a delete no text, a replace both. */
export interface Change {
  op: ChangeOp;
  start: number;
  end: number;
  text?: string;
}

/** Adjacent changed lines. Lines count from 1; a side without lines names the line before it. `text` contains only the changed lines, each with `-` or `+` (and git's note on a missing newline at the end). `touched`: the user changed its lines since; rejecting the complete file skips it. */
export interface ChangeHunk {
  hunkId: string;
  oldStart: number;
  oldLines: number;
  newStart: number;
  newLines: number;
  text: string;
  state: "open" | "accepted";
  touched: boolean;
}

/** Operation of a change (R1.94). */
export type ChangeOp = "insert" | "delete" | "replace";

/** A file that a session changed and that is not decided yet. `before` is its old name if it was renamed. A file without hunks (empty, binary, only renamed) is decided as a unit. */
export interface ChangedFile {
  sessionId: string;
  path: string;
  kind: "create" | "edit" | "delete" | "rename";
  added: number;
  removed: number;
  hunks: ChangeHunk[];
  before?: string;
  binary: boolean;
}

/** Without `sessionId`: changes of every session of this folder; a file is listed once per session. */
export interface ChangesParams {
  sessionId?: string | null;
}

export interface ChangesResult {
  files: ChangedFile[];
  checkpointId?: string;
}

export interface ChatParams {
  sessionId?: string | null;
  model?: string | null;
  approvals?: "ask" | "edits" | "sandbox" | "all" | "none" | null;
  limits?: RunLimitsInput | null;
  workDoneToken?: number | string | null;
  partialResultToken?: number | string | null;
  text: string;
  mode?: "ask" | "plan" | "act" | null;
  context?: ContextItemInput[];
  images?: Image[];
  grant?: EditGrant | null;
  cursor?: Cursor | null;
}

export interface CheckpointEvent {
  checkpointId: string;
  files: string[];
}

export interface CheckpointInfo {
  checkpointId: string;
  sessionId: string;
  runId: string;
  seq: number;
  time: string;
  files: string[];
}

export interface CheckpointListResult {
  checkpoints: CheckpointInfo[];
}

export interface CheckpointRef {
  checkpointId: string;
}

/** A sentence of a report with its proofs; without proof it is shown as an assertion. `unfit` is set in journals of earlier versions, which judged the sentence; it is shown as not proven. */
export interface Claim {
  text: string;
  proofs: Proof[];
  unfit: boolean;
}

/** Capabilities of the client (`initializationOptions.client`). */
export interface ClientOffer {
  approvals?: boolean;
  languageModel?: boolean;
  editor?: boolean;
  commands?: boolean;
  locale?: string | null;
}

/** An `instruction`, or the plan (or one of its steps) to implement. */
export interface CodeParams {
  sessionId?: string | null;
  model?: string | null;
  approvals?: "ask" | "edits" | "sandbox" | "all" | "none" | null;
  limits?: RunLimitsInput | null;
  workDoneToken?: number | string | null;
  partialResultToken?: number | string | null;
  instruction?: string | null;
  planId?: string | null;
  stepId?: string | null;
  context?: ContextItemInput[];
}

export interface CodeResult {
  runId: string;
  sessionId: string;
  status: "completed" | "completed_unverified" | "cancelled" | "failed" | "limit" | "paused";
  text: string;
  usage: Usage;
  lastSeq: number;
  error?: Failure;
  plan?: PlanStanding;
  unattended: boolean;
  reasons: UnverifiedReason[];
  unchecked: boolean;
  files: FileStat[];
}

/** A command that was run. A command that was denied or never started has exit code 1. */
export interface CommandOutcome {
  command: string;
  exitCode: number;
  output: string;
  callId: string;
  ended: boolean;
  unchanged?: boolean;
}

/** Commands to run unchanged, or an `instruction`, plan, or step that the runner turns into commands. */
export interface CommandsParams {
  sessionId?: string | null;
  model?: string | null;
  approvals?: "ask" | "edits" | "sandbox" | "all" | "none" | null;
  limits?: RunLimitsInput | null;
  workDoneToken?: number | string | null;
  partialResultToken?: number | string | null;
  instruction?: string | null;
  commands?: string[];
  planId?: string | null;
  stepId?: string | null;
}

/** Commands that were run. `not_run`: given commands after the first failure. */
export interface CommandsResult {
  runId: string;
  sessionId: string;
  status: "completed" | "completed_unverified" | "cancelled" | "failed" | "limit" | "paused";
  text: string;
  usage: Usage;
  lastSeq: number;
  error?: Failure;
  plan?: PlanStanding;
  unattended: boolean;
  reasons: UnverifiedReason[];
  unchecked: boolean;
  commands: CommandOutcome[];
  notRun: string[];
}

/** Handover of the runner: every command that was actually run, in order, and notes. */
export interface CommandsRun {
  kind: "commands";
  commands: CommandOutcome[];
  notes: string;
}

/** Replacement of the history so far by `summary`; the last `kept` messages stay unchanged. The model is also sent the names of the files that were read or changed. */
export interface Compacted {
  summary: string;
  kept: number;
  beforeTokens: number;
  afterTokens: number;
  filesRead: string[];
  filesChanged: string[];
}

/** Context that the user attached: a `uri` or text, depending on `kind`. `path` is the file's path in the workspace, as tools name it; it is set when a run starts. */
export interface ContextItem {
  kind: "file" | "selection" | "diagnostics" | "terminal" | "url" | "text" | "symbol";
  uri?: string;
  path?: string;
  range?: Range;
  text?: string;
}

/** Context that the user attached: a `uri` or text, depending on `kind`. `path` is the file's path in the workspace, as tools name it; it is set when a run starts. */
export interface ContextItemInput {
  kind: "file" | "selection" | "diagnostics" | "terminal" | "url" | "text" | "symbol";
  uri?: string | null;
  path?: string | null;
  range?: Range | null;
  text?: string | null;
}

/** A criterion of a rubric, with its weight. */
export interface Criterion {
  id: string;
  text: string;
  weight: number;
}

/** One playbook change that a Curator requests (B3.4). `id` is the bullet to change, `ids` those to merge. */
export interface CurationOperation {
  type: "ADD" | "UPDATE" | "MERGE" | "REMOVE";
  section: string;
  content: string;
  id: string;
  ids: string[];
}

/** Position of the user's cursor in the editor. */
export interface Cursor {
  uri: string;
  position: Position;
}

/** A decision. Without `path`: all files; without `hunkIds`: the complete file. */
export interface DecideParams {
  sessionId: string;
  decision: "accept" | "reject";
  path?: string | null;
  hunkIds?: string[] | null;
}

export interface Delta {
  text: string;
}

/** A finding of the diagnostics. `mend` says what to do about it. `action` is a button that a client may offer. `command` is for a terminal, where the user sees it before it runs. */
export interface DoctorFinding {
  area: "daiku" | "programs" | "settings" | "sandbox" | "models" | "mcp" | "tools" | "memory" | "trace" | "work";
  state: "good" | "note" | "bad";
  what: string;
  mend: string;
  action?: "key" | "model" | "settings" | "trust" | "log";
  command: string;
}

export interface DoctorResult {
  findings: DoctorFinding[];
}

/** A document, or one part of it, as a stage receives it. `text` is the text to work on: the complete document, or part `part` of `parts`. */
export interface Document {
  path: string;
  form: "markdown" | "rst" | "asciidoc" | "html" | "latex" | "plain";
  text: string;
  depth: number;
  part: number;
  parts: number;
  selection?: [number, number];
  outline: string;
  passages: string[];
  references: Passage[];
  rubric?: Rubric;
  lessons: string;
}

/** A document (file URI) and an instruction; with `range` for these lines only. */
export interface DocumentParams {
  sessionId?: string | null;
  model?: string | null;
  approvals?: "ask" | "edits" | "sandbox" | "all" | "none" | null;
  limits?: RunLimitsInput | null;
  workDoneToken?: number | string | null;
  partialResultToken?: number | string | null;
  uri: string;
  instruction: string;
  depth?: number | null;
  range?: Range | null;
}

/** A patch of the document. `patch` is in code points of the old document, `edits` by line and character; absent and empty if there is nothing to change, or a guard blocked it. */
export interface DocumentResult {
  runId: string;
  sessionId: string;
  status: "completed" | "completed_unverified" | "cancelled" | "failed" | "limit" | "paused";
  text: string;
  usage: Usage;
  lastSeq: number;
  error?: Failure;
  plan?: PlanStanding;
  unattended: boolean;
  reasons: UnverifiedReason[];
  unchecked: boolean;
  patch?: PatchJSON;
  edits: RangeEdit[];
}

/** Chunks before a window: their number (before `beforeSeq`) and their usage. */
export interface EarlierChunks {
  beforeSeq: number;
  count: number;
  usage: Usage;
}

export interface Edit {
  files: FileStat[];
  checkpointId: string;
  callId: string;
  diff: string;
}

/** Permission for the edits that the user requested in the editor. Changes to this file, or to these lines, need no approval in this run. Everything else follows the run's approval level. */
export interface EditGrant {
  uri: string;
  range?: Range | null;
}

/** `expected`: texts of the cells that the edit was made against; a mismatch is rejected. */
export interface EditNotebookParams {
  uri: string;
  expected: string[];
  cells: NewCell[];
}

export interface EditNotebookResult {
  applied: boolean;
  reason?: string;
}

/** A cell of an open notebook. `uri` is the cell's document, `id` the cell id of the notebook format. */
export interface EditorCell {
  uri: string;
  kind: "code" | "markup";
  language: string;
  text: string;
  id?: string;
}

export interface EditorDiagnostic {
  uri: string;
  range: Range;
  severity: "error" | "warning" | "info" | "hint";
  message: string;
  source?: string;
  cell?: number | null;
}

/** Request for the diagnostics of `uri`; absent: of all files. `settle`: wait until those of these files are up to date, and add only the errors of all other files. */
export interface EditorDiagnosticsParams {
  uri?: string;
  settle?: string[];
}

export interface EditorDiagnosticsResult {
  diagnostics: EditorDiagnostic[];
}

export interface EditorFileParams {
  uri: string;
}

export interface EditorLocation {
  uri: string;
  range: Range;
}

export interface EditorLocationsResult {
  locations: EditorLocation[];
}

/** A model of the editor; `context` in tokens. */
export interface EditorModel {
  id: string;
  name?: string;
  vendor?: string;
  family?: string;
  context?: number;
  tools?: boolean;
  images?: boolean;
}

export interface EditorModelsResult {
  models: EditorModel[];
}

/** A notebook in the editor, with unsaved changes; `cells` is absent if it is not open. */
export interface EditorNotebook {
  dirty?: boolean;
  cells?: EditorCell[] | null;
}

/** A position, in the negotiated position encoding. */
export interface EditorPlaceParams {
  uri: string;
  position: Position;
}

/** Documents to save after an edit, so that commands see it; they had no unsaved changes before. */
export interface EditorSaveParams {
  uris: string[];
}

/** Handover of the coder: the files that were actually changed, and notes. */
export interface EditsMade {
  kind: "edits";
  files: FileStat[];
  checkpoints: string[];
  notes: string;
}

/** One fact of a run's environment (date, mode, git status), as the model reads it. */
export interface EnvironmentFact {
  name: string;
  text: string;
}

/** Handover: scores of a text by a rubric (R1.66). `total` is the weighted mean, 0 to 1. `cached`: taken from an earlier evaluation of the same text by the same rubric and model. */
export interface Evaluated {
  kind: "evaluation";
  scores: Score[];
  total: number;
  cached: boolean;
}

/** A call that had no effect. `subject`: its path, command, or tool. `position`: commands that ran before it. */
export interface FailedCall {
  tool: string;
  subject: string;
  outcome: "done" | "failed" | "denied" | "rejected" | "unattended" | "interrupted" | "cancelled" | "not_run";
  position: number;
}

/** An error: what happened (`message`) and what the user can do (`hint`). Also an event of a run. */
export interface Failure {
  kind: "usage" | "no_provider" | "auth" | "rate_limit" | "timeout" | "connection" | "overloaded" | "bad_request" | "not_found" | "context_overflow" | "stream_cut" | "content_filter" | "format" | "tool" | "guardrail" | "handoff_depth" | "stale" | "busy" | "limit" | "plan" | "cancelled" | "internal";
  message: string;
  hint: string;
  retryable: boolean;
  cause?: string;
}

/** Number of added and removed lines of a changed file. */
export interface FileStat {
  path: string;
  kind: "create" | "edit" | "delete" | "rename";
  added: number;
  removed: number;
}

/** A page that a web tool returned for `query`; `text` is the part that was read. */
export interface Finding {
  query: string;
  url: string;
  title: string;
  text: string;
}

/** Handover of the researcher: its findings by URL, and notes; it may be empty. */
export interface Findings {
  queries: string[];
  results: Finding[];
  askUser: string;
  kind: "findings";
  notes: string;
}

/** A task, and the name of the prompt template for it. */
export interface GenerateParams {
  sessionId?: string | null;
  model?: string | null;
  approvals?: "ask" | "edits" | "sandbox" | "all" | "none" | null;
  limits?: RunLimitsInput | null;
  workDoneToken?: number | string | null;
  partialResultToken?: number | string | null;
  query: string;
  dataset: string;
}

/** The Generator's trajectory for a task. */
export interface GenerateResult {
  query: string;
  dataset: string;
  generatedAnswer: string;
  reasoningSteps: string[];
  usedBulletIds: string[];
  status: "success" | "failure";
  errorMessage?: string;
  createdAt: string;
}

/** A saved permission. `what` describes it; `key` identifies it for `daiku/grants/revoke`. */
export interface Grant {
  key: string;
  answer: "allow" | "reject";
  what: string;
}

export interface GrantRef {
  key: string;
}

export interface GrantsResult {
  grants: Grant[];
  workspace: string;
}

/** End of a nested run. `result` is its final text and `handover` its typed result (None if it has none, or an invalid one). `deeds` is the evidence of its work, `plans` are the plans that it changed, `usage` its tokens, `used_bullets` the lessons that it cited, `rejected` the number of changes that the user rejected. `problem` says why the result is unusable. */
export interface HandoffEnd {
  from: string;
  to: string;
  result: string;
  run: string;
  callId: string;
  status: "completed" | "completed_unverified" | "cancelled" | "failed" | "limit";
  handover?: PlanMade | SaidInWords | Findings | EditsMade | CommandsRun | ReportMade | TasksMade | TasksReported | SectionsChosen | PatchMade | ReferencesFound | SimilarityFound | Evaluated;
  problem: string;
  error?: Failure;
  deeds?: NestedEvidence;
  plans: Plan[];
  usage?: Usage;
  rounds: number;
  rejected: number;
  tainted: boolean;
  unattended: boolean;
  usedBullets: string[];
  reasons: UnverifiedReason[];
  refused: FailedCall[];
}

/** Start of a nested run. `run` is its id, `call_id` the parent's call that it answers. */
export interface HandoffStart {
  from: string;
  to: string;
  request: string;
  run: string;
  callId: string;
}

/** A playbook bullet that was added, changed, removed, or `proposed` for review. */
export interface HeldBullet {
  bulletId: string;
  change: string;
  content: string;
  why: string;
}

/** An image for the model: base64 data and its media type (image/png, …). */
export interface Image {
  mediaType: string;
  data: string;
}

/** `data` is base64. */
export interface ImagePart {
  type: "image";
  mediaType: string;
  data: string;
}

/** `data` is base64. */
export interface ImagePartInput {
  type?: "image";
  mediaType: string;
  data: string;
}

/** Initialization options. `settings` has the shape of the TOML file (PROTOCOL 2). */
export interface InitializationOptions {
  settings?: JsonObject | null;
  client?: ClientOffer | null;
  trusted?: boolean | null;
}

export interface InputAsked {
  inputId: string;
  question: string;
  choices: string[];
  callId: string;
  fromServer: boolean;
}

export interface InputGiven {
  inputId: string;
  text: string;
  unattended: boolean;
}

/** A command (or external tool call) that ran after a checkpoint and cannot be undone. */
export interface Irrevocable {
  command: string;
  exitCode?: number;
  time: string;
}

/** A problem in a text with its replacement. Its position is `start` and `end` (code points, half-open), or the only occurrence of `quote`; with both, they must agree. */
export interface Issue {
  replacement: string;
  quote: string;
  start?: number;
  end?: number;
  reason: string;
}

/** Progress of an item's plan: completed steps, all steps, and the name of the current step. */
export interface ItemProgress {
  done: number;
  total: number;
  step: string;
}

export interface LanguageModelMessage {
  role: "system" | "user" | "assistant";
  parts: (TextPart | ThinkingPart | ImagePart | CallPart | ResultPart)[];
}

/** A model request. The client streams `$/progress {token: partialResultToken, value: Part}` until it answers. */
export interface LanguageModelParams {
  model: string;
  messages: LanguageModelMessage[];
  tools: LanguageModelTool[];
  partialResultToken?: number | string;
}

/** The complete reply, including what was streamed; tokens are 0 if the editor does not report them. */
export interface LanguageModelResult {
  parts: (TextPartInput | ThinkingPartInput | ImagePartInput | CallPartInput | ResultPartInput)[];
  promptTokens?: number;
  completionTokens?: number;
}

/** `inputSchema` is JSON Schema. */
export interface LanguageModelTool {
  name: string;
  description: string;
  inputSchema: JsonObject;
}

/** Source of a change: a chunk of a run in a session. */
export interface LearntFrom {
  sessionId: string;
  runId: string;
  seq: number;
}

/** An unfinished line that changes added to a file (`count` times; negative: removed). */
export interface LeftoverPlace {
  path: string;
  text: string;
  count: number;
}

/** A playbook bullet as sent to a run; `version` increases with every change of its text. */
export interface Lesson {
  id: string;
  version: number;
  text: string;
}

/** A complete, durable message: from the user (also steering), or a reply that closes its deltas. `calls` are the reply's tool calls before any check; each gets one `tool_call` and one `tool_response`. `opaque` is the provider's data and goes back to it unchanged. `seen` is the number of messages in the reply's request; later messages come after the reply. `reminder` marks a user message written by Daiku. `partial` marks the draft of a reply that was cut off: it is shown, never an answer, and a resumed run calls the model again. */
export interface MessageEvent {
  role: "user" | "assistant";
  text: string;
  agent: string;
  thinking: string;
  calls: ToolCall[];
  opaque: JsonObject;
  seen?: number;
  reminder?: "objection" | "errors" | "rounds" | "last_word" | "unfinished" | "cut_off";
  partial: boolean;
  finish: "stop" | "tool_calls" | "length" | "content_filter" | "other";
}

/** A selectable model; `id` is `provider/name`. Tokens are 0 if unknown. */
export interface ModelOffer {
  id: string;
  provider: string;
  name: string;
  context: number;
  maxOutput: number;
  tools: boolean;
  images: boolean;
  thinking: boolean;
  trait: string;
}

export interface ModelsResult {
  models: ModelOffer[];
  providers: ProviderState[];
  selected?: string;
}

/** Evidence of a nested run for its parent: `Evidence` without what is in progress. */
export interface NestedEvidence {
  files: FileStat[];
  checkpoints: string[];
  commands: CommandOutcome[];
  proofs: Proof[];
  leftovers: LeftoverPlace[];
  edits: number[];
  acted: boolean;
}

/** New state of a cell. `at` is its 0-based old number; absent: a new cell. */
export interface NewCell {
  at?: number;
  kind: "code" | "markup";
  language: string;
  text: string;
}

/** Empty params. */
export type Nothing = Record<string, never>;

/** A message to the user. The model receives `rules`, which stay until the session ends, and the changed facts of `environment`. `attempt` counts model calls that failed in a row; the last notice applies. */
export interface Notice {
  level: "info" | "warning" | "error";
  text: string;
  attempt: number;
  rules: RulesText[];
  environment: EnvironmentFact[];
}

export interface OriginalParams {
  sessionId: string;
  path: string;
}

export interface OriginalResult {
  text?: string;
}

/** A passage of another text: its source, its text, and its similarity (0 to 1). */
export interface Passage {
  source: string;
  text: string;
  score: number;
}

/** A new text and its change map (R1.96): applying `change_map` to the old text gives `new_text`. */
export interface PatchJSON {
  newText: string;
  changeMap: Change[];
}

/** Handover: a patch of the stage's text, and the issues that could not be placed. */
export interface PatchMade {
  kind: "patch";
  patch: PatchJSON;
  unplaced: Unplaced[];
  notes: string;
}

/** A goal and its steps (R4.31–R4.33). `focus`: the subject of the work, in a few words. `dropped_checks`: checks of unfinished steps that a replan left out. */
export interface Plan {
  planId: string;
  name: string;
  goal: string;
  focus: string;
  summary: string;
  status: "draft" | "approved" | "in_progress" | "completed" | "failed";
  steps: Step[];
  droppedChecks: string[];
}

/** Deletion of a plan by the user: no list shows it, and no run of the session can use it. */
export interface PlanDeleted {
  planId: string;
  name: string;
}

export interface PlanEvent {
  plan: Plan;
}

/** A checklist, a planner's lines, or a plan as JSON; without a session in a new one. */
export interface PlanImportParams {
  markdown: string;
  sessionId?: string | null;
}

/** A plan with its progress, for requests about one plan. */
export interface PlanInFull {
  planId: string;
  name: string;
  status: "draft" | "approved" | "in_progress" | "completed" | "failed";
  done: number;
  total: number;
  failed: number;
  open: number;
  goal: string;
  focus: string;
  summary: string;
  steps: Step[];
  droppedChecks: string[];
}

/** Handover of the planner: a plan with at least one step. */
export interface PlanMade {
  kind: "plan";
  plan: Plan;
}

export interface PlanParams {
  sessionId?: string | null;
  model?: string | null;
  approvals?: "ask" | "edits" | "sandbox" | "all" | "none" | null;
  limits?: RunLimitsInput | null;
  workDoneToken?: number | string | null;
  partialResultToken?: number | string | null;
  goal: string;
  context?: ContextItemInput[];
}

export interface PlanRef {
  planId: string;
}

export interface PlanResult {
  runId: string;
  sessionId: string;
  status: "completed" | "completed_unverified" | "cancelled" | "failed" | "limit" | "paused";
  text: string;
  usage: Usage;
  lastSeq: number;
  error?: Failure;
  plan?: Plan;
  unattended: boolean;
  reasons: UnverifiedReason[];
  unchecked: boolean;
}

/** The plan to run, or one step of it; without a session in the plan's own. */
export interface PlanRunParams {
  planId: string;
  sessionId?: string | null;
  model?: string | null;
  approvals?: "ask" | "edits" | "sandbox" | "all" | "none" | null;
  limits?: RunLimitsInput | null;
  workDoneToken?: number | string | null;
  partialResultToken?: number | string | null;
  stepId?: string | null;
}

/** Result of a plan's run: the plan afterwards, and the claims with their proofs. */
export interface PlanRunResult {
  runId: string;
  sessionId: string;
  status: "completed" | "completed_unverified" | "cancelled" | "failed" | "limit" | "paused";
  text: string;
  usage: Usage;
  lastSeq: number;
  error?: Failure;
  plan?: PlanInFull;
  unattended: boolean;
  reasons: UnverifiedReason[];
  unchecked: boolean;
  report?: Report;
}

/** Progress of a plan at the end of a run: its steps by status. `open` steps are neither completed nor failed. */
export interface PlanStanding {
  planId: string;
  name: string;
  status: "draft" | "approved" | "in_progress" | "completed" | "failed";
  done: number;
  total: number;
  failed: number;
  open: number;
}

/** New values of a plan's fields; absent fields stay. */
export interface PlanUpdateParams {
  planId: string;
  name?: string | null;
  goal?: string | null;
  summary?: string | null;
  steps?: StepInput[] | null;
}

/** A new bullet. With `propose` it is pending until a review. */
export interface PlaybookAddParams {
  section: string;
  content: string;
  keywords?: string[];
  scope?: "repository" | "user";
  propose?: boolean;
}

/** One lesson. `id` is `<slug>-00001`. `helpful` and `harmful` are counts from runs and imports, kept as long as the meaning of the text is unchanged. */
export interface PlaybookBullet {
  id: string;
  section: string;
  content: string;
  keywords: string[];
  helpful: number;
  harmful: number;
  active: boolean;
  origin: "person" | "rule" | "model" | "import";
  createdAt: string;
  updatedAt: string;
}

/** Applied or proposed changes, and the resulting bullet; none for a proposed addition. `redacted`: secrets were removed from the text. */
export interface PlaybookChange {
  deltas: PlaybookDelta[];
  bullet?: PlaybookBullet;
  redacted: boolean;
}

/** A change of a playbook: proposed, or applied with the affected bullets `before` and `after`. `bullet_id` is the changed bullet (for an `add`, its id once applied), `bullet_ids` are those that a `merge` absorbs. An `update` without keywords keeps them; `no_keywords` removes them. `doubts` are for the reviewer. `again` lists where the lesson was learned again after a rejection. */
export interface PlaybookDelta {
  id: string;
  type: "add" | "update" | "tag" | "merge" | "remove" | "restore";
  scope: "repository" | "user";
  section: string;
  content: string;
  keywords: string[];
  noKeywords: boolean;
  bulletId: string;
  bulletIds: string[];
  tag?: "helpful" | "harmful" | "neutral";
  status: "proposed" | "applied" | "rejected" | "undone";
  origin: "person" | "rule" | "model" | "import";
  why: string;
  evidence: LearntFrom[];
  again: LearntFrom[];
  doubts: ("tainted" | "rejected")[];
  before: PlaybookBullet[];
  after: PlaybookBullet[];
  createdAt: string;
  decidedAt: string;
}

/** Filter of changes. Without scope: both playbooks. `newest`: at most this many, the last decided. */
export interface PlaybookDeltasParams {
  scope?: "repository" | "user" | null;
  statuses?: ("proposed" | "applied" | "rejected" | "undone")[];
  newest?: number | null;
}

/** Changes, oldest first; with `newest` in the order of their last decision. */
export interface PlaybookDeltasResult {
  deltas: ShownDelta[];
}

/** Filter of a list. Without scope: both playbooks, the repository's first. Without section: all. Without `all`: active bullets only. */
export interface PlaybookListParams {
  scope?: "repository" | "user" | null;
  section?: string;
  all?: boolean;
}

/** Bullets in the order of creation. `resting` are the ids of bullets that no run receives because their confidence is below the threshold. `sections` are suggestions for new bullets; others are allowed. */
export interface PlaybookListResult {
  bullets: PlaybookBullet[];
  resting: string[];
  sections: string[];
}

/** Source of a lesson in a session; `title` is the session's, empty if it was deleted. */
export interface PlaybookPlace {
  sessionId: string;
  runId: string;
  seq: number;
  title: string;
}

/** Id of a bullet, unique across both playbooks. */
export interface PlaybookRef {
  id: string;
}

/** Decisions, applied one by one in this order. `accept` may name rejected changes. `undo` reverts applied changes and makes rejected ones pending again. */
export interface PlaybookReviewParams {
  accept?: AcceptedDelta[];
  reject?: string[];
  undo?: string[];
}

/** The changes after the review, and those that could not be decided this way. */
export interface PlaybookReviewResult {
  decided: PlaybookDelta[];
  refused: RefusedDelta[];
  redacted: boolean;
}

/** A search. Without scope: both playbooks. Without `topK`: the number in the settings. */
export interface PlaybookSearchParams {
  query: string;
  scope?: "repository" | "user" | null;
  section?: string;
  topK?: number | null;
}

/** Hits, best first. */
export interface PlaybookSearchResult {
  hits: BulletHit[];
}

/** A bullet, its changes (oldest first), and its observations. */
export interface PlaybookShowResult {
  bullet: PlaybookBullet;
  history: ShownDelta[];
  observations: BulletObservation[];
}

/** Changes of a bullet; absent fields stay. `keywords: []` removes the keywords. `active`: false disables the bullet, true enables it again. */
export interface PlaybookUpdateParams {
  id: string;
  content?: string | null;
  keywords?: string[] | null;
  active?: boolean | null;
}

/** `revision`: the client's last revision, or empty. */
export interface PlaybookWatchParams {
  revision?: string;
}

/** Answer of the long poll, sent as soon as a playbook differs from `revision`. The `bullet` events of a run are then in its session, after the end of the run. `active` counts the active bullets of both playbooks, `waiting` the pending changes. `repository`: the folder has a playbook. */
export interface PlaybookWatchResult {
  revision: string;
  active: number;
  waiting: number;
  repository: boolean;
}

export interface Position {
  line: number;
  character: number;
}

/** Evidence for a claim: an exit code, diagnostics, a checkpoint's diff, or the user's confirmation. `ref` finds it in the journal: the id of the call or of the checkpoint. */
export interface Proof {
  kind: "exit_code" | "diagnostics" | "diff" | "person";
  subject: string;
  ref: string;
  ok: boolean;
  value: string;
  remarks: ("passed_before" | "no_tests" | "check_changed")[];
}

/** Status of a provider, with the error if it is unusable. */
export interface ProviderState {
  provider: string;
  usable: boolean;
  error?: Failure;
  origin: string;
}

/** Shortening of tool results that the model no longer needs in full, to save context. */
export interface Pruned {
  results: ShortenedResult[];
  beforeTokens: number;
  afterTokens: number;
}

export interface Range {
  start: Position;
  end: Position;
}

/** A change by line and character of the old text, in the negotiated position encoding. */
export interface RangeEdit {
  range: Range;
  newText: string;
}

/** A memory of earlier sessions that matches the request, with its score (0 to 1). */
export interface Recalled {
  id: string;
  text: string;
  score: number;
}

/** Handover: reference passages of the workspace that are similar to the new text; `by` names the search. */
export interface ReferencesFound {
  kind: "references";
  passages: Passage[];
  by: string;
}

/** A model's reflection on the surrounding run, and the playbook operations that it requests. Neither is applied by this event. */
export interface Reflected {
  reflection: Reflection;
  operations: CurationOperation[];
}

/** A Reflector's analysis of a run (B3.3). Reasoning, errors, root cause, correct approach, insights, and a verdict on each bullet. */
export interface Reflection {
  reasoning: string;
  errorIdentification: string;
  rootCauseAnalysis: string;
  correctApproach: string;
  keyInsight: string;
  insights: string[];
  tags: BulletTag[];
}

/** A change that could not be decided this way, and why. */
export interface RefusedDelta {
  id: string;
  message: string;
}

/** Result of the work in words, and claims with their proofs. `from_records`: generated without a model. */
export interface Report {
  text: string;
  claims: Claim[];
  fromRecords: boolean;
}

/** Handover of the reporter: its report. */
export interface ReportMade {
  kind: "report";
  report: Report;
}

/** A `question`, or the plan to research. */
export interface ResearchParams {
  sessionId?: string | null;
  model?: string | null;
  approvals?: "ask" | "edits" | "sandbox" | "all" | "none" | null;
  limits?: RunLimitsInput | null;
  workDoneToken?: number | string | null;
  partialResultToken?: number | string | null;
  planId?: string | null;
  question?: string | null;
}

/** Result of research; has queries even if nothing could be looked up. */
export interface ResearchResult {
  queries: string[];
  results: Finding[];
  askUser: string;
  runId: string;
  sessionId: string;
  status: "completed" | "completed_unverified" | "cancelled" | "failed" | "limit" | "paused";
  text: string;
  usage: Usage;
  lastSeq: number;
  error?: Failure;
  plan?: PlanStanding;
  unattended: boolean;
  reasons: UnverifiedReason[];
  unchecked: boolean;
}

/** Restored files. `checkpointId` is the checkpoint for redo. */
export interface RestoreResult {
  files: FileStat[];
  cannotUndo: Irrevocable[];
  checkpointId?: string;
}

/** Restoration of files to `checkpoint_id`; `redo` is the checkpoint taken before. */
export interface Restored {
  checkpointId: string;
  files: FileStat[];
  cannotUndo: Irrevocable[];
  redo?: string;
}

export interface ResultPart {
  type: "result";
  callId: string;
  text: string;
}

export interface ResultPartInput {
  type?: "result";
  callId: string;
  text: string;
}

export interface ResumeParams {
  runId: string;
  approvals?: "ask" | "edits" | "sandbox" | "all" | "none" | null;
  workDoneToken?: number | string | null;
  partialResultToken?: number | string | null;
}

/** The user's decision on changes of one file. `hunks` is their number, 0 if there are none to count. `checkpoint_id` holds the review state after it and the files before it. `lines` are those that a rejection removed (`+`) and restored (`-`). */
export interface Review {
  decision: "accept" | "reject";
  path: string;
  hunks: number;
  checkpointId?: string;
  lines?: string;
}

/** Criteria for judging texts. */
export interface Rubric {
  name: string;
  criteria: Criterion[];
}

/** Text of a rules file below a root, as sent to the model; untrusted rules are data. */
export interface RulesText {
  path: string;
  text: string;
  trusted: boolean;
}

export interface RunFinished {
  status: "completed" | "completed_unverified" | "cancelled" | "failed" | "limit";
  text: string;
  usage: Usage;
  plan?: PlanStanding;
  usedBullets: string[];
  reasons: UnverifiedReason[];
  unchecked: boolean;
}

/** Limits at which a run stops; 0 means no limit (X.24). */
export interface RunLimits {
  maxRounds: number;
  maxTokens: number;
  maxCost: number;
  maxSeconds: number;
  maxToolErrors: number;
  maxEqualErrors: number;
  maxRepeats: number;
  maxActions: number;
  maxRepairs: number;
  maxReplans: number;
  maxAttempts: number;
  checkSeconds: number;
  maxVerifications: number;
}

/** Limits at which a run stops; 0 means no limit (X.24). */
export interface RunLimitsInput {
  maxRounds?: number;
  maxTokens?: number;
  maxCost?: number;
  maxSeconds?: number;
  maxToolErrors?: number;
  maxEqualErrors?: number;
  maxRepeats?: number;
  maxActions?: number;
  maxRepairs?: number;
  maxReplans?: number;
  maxAttempts?: number;
  checkSeconds?: number;
  maxVerifications?: number;
}

export interface RunRef {
  runId: string;
}

/** How a run ended, as every front reports it. */
export interface RunResult {
  runId: string;
  sessionId: string;
  status: "completed" | "completed_unverified" | "cancelled" | "failed" | "limit" | "paused";
  text: string;
  usage: Usage;
  lastSeq: number;
  error?: Failure;
  plan?: PlanStanding;
  unattended: boolean;
  reasons: UnverifiedReason[];
  unchecked: boolean;
}

/** First event of a run. `prompt` is the user's message, with `images` and `context`. If `calls` is not empty, the run executes them in order and no model is called. `driven`: a state machine produces the replies, and round limits do not apply. `told` is the message that the agent reads instead of the prompt, built from `brief`. `tainted`: it contains untrusted text. `rounds_before` is the number of rounds of `limits.max_rounds` that outer runs have used. `environment` is the complete environment; the model is sent only facts that are new to it. The same holds for `recalled` and for the playbook `lessons` that match the request: each version is sent once per session. */
export interface RunStarted {
  prompt: string;
  mode: "ask" | "plan" | "act";
  model: string;
  limits: RunLimits;
  context: ContextItem[];
  images: Image[];
  calls: ToolCall[];
  driven: boolean;
  brief?: Brief;
  told: string;
  tainted: boolean;
  roundsBefore: number;
  environment: EnvironmentFact[];
  recalled: Recalled[];
  lessons: Lesson[];
  mayEdit: boolean;
  wording?: string;
}

/** Handover as plain text, from an agent without a type of its own or without a result. */
export interface SaidInWords {
  kind: "words";
  text: string;
}

/** A score for one criterion (0 to 4), its reason, and advice. */
export interface Score {
  criterion: string;
  score: number;
  why: string;
  advice: string;
}

/** Handover: relevant parts of a long document, by number from 1. */
export interface SectionsChosen {
  kind: "sections";
  numbers: number[];
}

/** Capabilities of the server (`capabilities.experimental.daiku` of the initialize result). */
export interface ServerOffer {
  version: string;
  protocol: number;
  methods: string[];
  commands: string[];
}

/** Status of a configured MCP server; this request starts none. The tools are those of its last run. */
export interface ServerState {
  name: string;
  status: "ready" | "starting" | "down" | "unasked" | "changed" | "rejected" | "unusable";
  tools: string[];
  why: string;
  hint: string;
}

/** A session. `status` is that of its last run. `idle`: no run yet. `waiting`: it asks the user. `interrupted`: its process ended. */
export interface Session {
  sessionId: string;
  title: string;
  createdAt: string;
  updatedAt: string;
  lastSeq: number;
  model?: string;
  status: "idle" | "running" | "waiting" | "paused" | "interrupted" | "completed" | "completed_unverified" | "cancelled" | "failed" | "limit";
}

export interface SessionExportParams {
  sessionId: string;
  format?: "markdown" | "json" | "jsonl" | "trace";
}

export interface SessionForkParams {
  sessionId: string;
  atSeq: number;
  restoreFiles?: boolean;
}

/** With `last`: about this many of the last chunks (before `beforeSeq`, if given), starting at a message. Without: all after `afterSeq`. */
export interface SessionGetParams {
  sessionId: string;
  afterSeq?: number;
  last?: number | null;
  beforeSeq?: number | null;
}

export interface SessionGetResult {
  session: Session;
  chunks: Chunk[];
  earlier?: EarlierChunks;
}

export interface SessionListParams {
  query?: string | null;
  limit?: number;
}

export interface SessionListResult {
  sessions: Session[];
}

export interface SessionNewParams {
  title?: string | null;
}

export interface SessionRef {
  sessionId: string;
}

/** New `text` for the result of the call `call_id`, at index `at` (0-based) of the conversation. */
export interface ShortenedResult {
  at: number;
  callId: string;
  text: string;
}

/** A change with its data for review. `bullets` are the affected bullets as they are now, `places` the sources. `diff` has `@@ id @@` lines and lines that begin with `-`, `+`, or a space; keywords come last, labelled in the client's language. */
export interface ShownDelta {
  id: string;
  type: "add" | "update" | "tag" | "merge" | "remove" | "restore";
  scope: "repository" | "user";
  section: string;
  content: string;
  keywords: string[];
  noKeywords: boolean;
  bulletId: string;
  bulletIds: string[];
  tag?: "helpful" | "harmful" | "neutral";
  status: "proposed" | "applied" | "rejected" | "undone";
  origin: "person" | "rule" | "model" | "import";
  why: string;
  evidence: LearntFrom[];
  again: LearntFrom[];
  doubts: ("tainted" | "rejected")[];
  before: PlaybookBullet[];
  after: PlaybookBullet[];
  createdAt: string;
  decidedAt: string;
  bullets: PlaybookBullet[];
  diff: string;
  places: PlaybookPlace[];
}

/** Handover: similarity of the new text to the nearest text compared (R1.63-R1.65). */
export interface SimilarityFound {
  kind: "similarity";
  action: "pass" | "warn" | "block";
  score: number;
  nearest?: Passage;
}

export interface SteerParams {
  runId: string;
  text: string;
}

/** A milestone. `acceptance` lists the commands or diagnostics checks that must pass (R4.28–R4.30). `check_seconds` maps checks to timeouts in seconds that override `limits.check_seconds`. `own_checks` are those that the user wrote; a replan keeps them. */
export interface Step {
  stepId: string;
  name: string;
  description: string;
  status: "pending" | "in_progress" | "completed" | "failed";
  dependsOn: string[];
  acceptance: string[];
  checkSeconds: { [key: string]: number };
  ownChecks: string[];
  taskList: Task[];
}

/** A milestone. `acceptance` lists the commands or diagnostics checks that must pass (R4.28–R4.30). `check_seconds` maps checks to timeouts in seconds that override `limits.check_seconds`. `own_checks` are those that the user wrote; a replan keeps them. */
export interface StepInput {
  stepId?: string;
  name: string;
  description?: string;
  status?: "pending" | "in_progress" | "completed" | "failed";
  dependsOn?: string[];
  acceptance?: string[];
  checkSeconds?: { [key: string]: number };
  ownChecks?: string[];
  taskList?: TaskInput[];
}

/** One atomic operation of a step: one tool call (R4.25–R4.27). */
export interface Task {
  taskId: string;
  operation: string;
  args: JsonObject;
  status: "pending" | "in_progress" | "completed" | "failed";
  result?: string;
}

/** One atomic operation of a step: one tool call (R4.25–R4.27). */
export interface TaskInput {
  taskId?: string;
  operation: string;
  args?: JsonObject;
  status?: "pending" | "in_progress" | "completed" | "failed";
  result?: string | null;
}

/** Result of a step's tasks (R4.40), with the numbers of the execution log. */
export interface TaskReport {
  status: "completed" | "failed";
  succeeded: number;
  failed: number;
  summary: string;
  cause: string;
  nextAction: string;
}

/** Handover of the agent that splits a step: its tasks in order, at least one. */
export interface TasksMade {
  kind: "tasks";
  tasks: Task[];
}

/** Handover of the agent that reports on a step's tasks. */
export interface TasksReported {
  kind: "task_report";
  report: TaskReport;
}

export interface TextPart {
  type: "text";
  text: string;
}

export interface TextPartInput {
  type?: "text";
  text: string;
}

export interface TextResult {
  text: string;
}

export interface Thinking {
  text: string;
}

export interface ThinkingPart {
  type: "thinking";
  text: string;
}

export interface ThinkingPartInput {
  type?: "thinking";
  text: string;
}

/** The model's complete to-do list, which replaces the previous one. */
export interface Todo {
  items: TodoItem[];
}

/** One entry of the model's to-do list. */
export interface TodoItem {
  title: string;
  status: "pending" | "in_progress" | "completed";
}

/** A tool call of a model. `tool` is the canonical `namespace/tool`. `malformed` holds argument text that is not a JSON object; such a call is answered with an error, never run. `notes` say how nonstandard arguments were read; the result repeats them. */
export interface ToolCall {
  id: string;
  tool: string;
  args: JsonObject;
  reasoning?: string;
  malformed?: string;
  notes: string[];
}

/** Start of a tool call, or its denial, which its response follows at once. Written once per call. */
export interface ToolCallEvent {
  id: string;
  tool: string;
  args: JsonObject;
  reasoning?: string;
}

/** An image that a tool returns: base64 data and its media type. */
export interface ToolImage {
  mediaType: string;
  data: string;
}

export interface ToolInfo {
  name: string;
  description: string;
  parameters: JsonObject;
  effect: "none" | "read" | "edit" | "command" | "network" | "mcp" | "plan" | "ask" | "memory";
  origin: string;
}

export interface ToolOutput {
  id: string;
  text: string;
}

/** Result of a tool call. The model reads the English text of `result`. */
export interface ToolResponse {
  id: string;
  tool: string;
  ok: boolean;
  result: string;
  durationMs: number;
  data?: JsonObject;
  images: ToolImage[];
  untrusted: boolean;
  outcome: "done" | "failed" | "denied" | "rejected" | "unattended" | "interrupted" | "cancelled" | "not_run";
}

export interface ToolsResult {
  tools: ToolInfo[];
  servers: ServerState[];
}

/** Spans in the order of their start. `until` is the end of the last span, or now. */
export interface TraceResult {
  session: Session;
  spans: TraceSpan[];
  until: string;
}

/** A span of a trace. `parent` is the key of the outer span, absent at the top. `seq` is its first chunk. `duration_ms` is absent while it is running. `usage` is an agent's own usage so far, or that of a model call. `error` says why it failed. */
export interface TraceSpan {
  key: string;
  parent?: string;
  kind: "agent" | "chat" | "tool";
  name: string;
  run: string;
  callId: string;
  seq: number;
  start: string;
  durationMs?: number;
  status: "running" | "ok" | "failed" | "cancelled";
  error: string;
  usage?: Usage;
  retries: number;
}

/** An issue that could not be turned into a change, and why. */
export interface Unplaced {
  issue: Issue;
  why: "no_place" | "not_there" | "several_places" | "overlap" | "outside" | "nothing_changes" | "protected";
}

/** One reason why the record of a run does not support that its work is done. */
export interface UnverifiedReason {
  kind: "last_check_failed" | "check_masked" | "check_not_run" | "still_running" | "edit_not_applied" | "not_approved" | "nothing_changed" | "no_plan" | "todo_open" | "cut_off" | "refused" | "filtered" | "unreadable_calls" | "tools_missing";
  message: string;
  subject: string;
}

/** Tokens of one call or one run; `cost` in USD, or None if the price is unknown. As an event: one call. */
export interface Usage {
  model: string;
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number;
  cost?: number;
}

/** A work item for commands, editors, and scripts. `error` says why it failed, waits, or was stopped. `wanted` is a pending signal. `usage` is the total of its runs so far, or None. */
export interface WorkItem {
  item: string;
  title: string;
  url: string;
  state: "queued" | "processing" | "paused" | "waiting" | "done" | "failed" | "dead" | "stopped";
  sessionId: string;
  branch: string;
  requestUrl: string;
  attempts: number;
  wanted: "" | "pause" | "cancel";
  progress?: ItemProgress;
  usage?: Usage;
  error: string;
  createdAt: string;
  updatedAt: string;
}

/** A work item, such as `gitlab:group/name#3` or `files:name`. */
export interface WorkItemRef {
  item: string;
}

/** Filter of work items; without a state all of them. */
export interface WorkListParams {
  state?: "queued" | "processing" | "paused" | "waiting" | "done" | "failed" | "dead" | "stopped" | null;
}

/** Work items, last changed first. */
export interface WorkListResult {
  items: WorkItem[];
}

/** An item without a worker, and the folder of its files (empty if not on this machine). An item that is still `processing` pauses at its next step. */
export interface WorkPlace {
  item: WorkItem;
  folder: string;
}

/** `revision`: the client's last revision, or empty. */
export interface WorkWatchParams {
  revision?: string;
}

/** Current work items, last changed first. */
export interface WorkWatchResult {
  revision: string;
  items: WorkItem[];
}

/** What every Chunk carries. `seq` rises by one in a session; `time` is ISO-8601 UTC with milliseconds. */
export interface Envelope {
  seq: number;
  /** Set where one chunk stands for the adjacent deltas `seqFrom`…`seq` (a slow client). */
  seqFrom?: number;
  time: string;
  session: string;
  run: string;
  /** The run that this one is nested in. */
  parent?: string;
  agent: string;
}

/** Everything that happens in a session. Ignore types that you do not know. */
export type Chunk =
  | (Envelope & { type: "run_started"; data: RunStarted })
  | (Envelope & { type: "run_finished"; data: RunFinished })
  | (Envelope & { type: "agent_start"; data: AgentStart })
  | (Envelope & { type: "agent_end"; data: AgentEnd })
  | (Envelope & { type: "handoff_start"; data: HandoffStart })
  | (Envelope & { type: "handoff_end"; data: HandoffEnd })
  | (Envelope & { type: "message"; data: MessageEvent })
  | (Envelope & { type: "delta"; data: Delta })
  | (Envelope & { type: "thinking"; data: Thinking })
  | (Envelope & { type: "tool_call"; data: ToolCallEvent })
  | (Envelope & { type: "tool_output"; data: ToolOutput })
  | (Envelope & { type: "tool_response"; data: ToolResponse })
  | (Envelope & { type: "approval_asked"; data: ApprovalAsked })
  | (Envelope & { type: "approval_given"; data: ApprovalGiven })
  | (Envelope & { type: "input_asked"; data: InputAsked })
  | (Envelope & { type: "input_given"; data: InputGiven })
  | (Envelope & { type: "plan"; data: PlanEvent })
  | (Envelope & { type: "plan_deleted"; data: PlanDeleted })
  | (Envelope & { type: "edit"; data: Edit })
  | (Envelope & { type: "checkpoint"; data: CheckpointEvent })
  | (Envelope & { type: "review"; data: Review })
  | (Envelope & { type: "restored"; data: Restored })
  | (Envelope & { type: "usage"; data: Usage })
  | (Envelope & { type: "notice"; data: Notice })
  | (Envelope & { type: "error"; data: Failure })
  | (Envelope & { type: "compacted"; data: Compacted })
  | (Envelope & { type: "pruned"; data: Pruned })
  | (Envelope & { type: "todo"; data: Todo })
  | (Envelope & { type: "bullet"; data: HeldBullet })
  | (Envelope & { type: "reflected"; data: Reflected });

export type ChunkType = Chunk["type"];

/** The types that this contract knows; a newer server may have more. */
export const CHUNK_TYPES: ReadonlySet<ChunkType> = new Set([
  "run_started",
  "run_finished",
  "agent_start",
  "agent_end",
  "handoff_start",
  "handoff_end",
  "message",
  "delta",
  "thinking",
  "tool_call",
  "tool_output",
  "tool_response",
  "approval_asked",
  "approval_given",
  "input_asked",
  "input_given",
  "plan",
  "plan_deleted",
  "edit",
  "checkpoint",
  "review",
  "restored",
  "usage",
  "notice",
  "error",
  "compacted",
  "pruned",
  "todo",
  "bullet",
  "reflected"
]);

/** Shown, never stored: what they said is in the event that closes them. */
export const EPHEMERAL: ReadonlySet<ChunkType> = new Set(["delta", "thinking", "tool_output"]);

/** Requests, client to server: method -> [params, result]. */
export interface Requests {
  "daiku/chat": [params: ChatParams, result: RunResult];
  "daiku/plan": [params: PlanParams, result: PlanResult];
  "daiku/research": [params: ResearchParams, result: ResearchResult];
  "daiku/code": [params: CodeParams, result: CodeResult];
  "daiku/run": [params: CommandsParams, result: CommandsResult];
  "daiku/document": [params: DocumentParams, result: DocumentResult];
  "daiku/generate": [params: GenerateParams, result: GenerateResult];
  "daiku/resume": [params: ResumeParams, result: RunResult];
  "daiku/pause": [params: RunRef, result: RunResult];
  "daiku/cancel": [params: RunRef, result: RunResult];
  "daiku/steer": [params: SteerParams, result: null];
  "daiku/approve": [params: ApproveParams, result: null];
  "daiku/answer": [params: AnswerParams, result: null];
  "daiku/session/new": [params: SessionNewParams, result: Session];
  "daiku/session/list": [params: SessionListParams, result: SessionListResult];
  "daiku/session/get": [params: SessionGetParams, result: SessionGetResult];
  "daiku/session/delete": [params: SessionRef, result: null];
  "daiku/session/fork": [params: SessionForkParams, result: Session];
  "daiku/session/export": [params: SessionExportParams, result: TextResult];
  "daiku/plan/get": [params: PlanRef, result: Plan];
  "daiku/plan/update": [params: PlanUpdateParams, result: Plan];
  "daiku/plan/approve": [params: PlanRef, result: Plan];
  "daiku/plan/run": [params: PlanRunParams, result: PlanRunResult];
  "daiku/plan/import": [params: PlanImportParams, result: Plan];
  "daiku/plan/export": [params: PlanRef, result: TextResult];
  "daiku/checkpoint/list": [params: SessionRef, result: CheckpointListResult];
  "daiku/checkpoint/restore": [params: CheckpointRef, result: RestoreResult];
  "daiku/changes/list": [params: ChangesParams, result: ChangesResult];
  "daiku/changes/decide": [params: DecideParams, result: ChangesResult];
  "daiku/changes/original": [params: OriginalParams, result: OriginalResult];
  "daiku/trace/get": [params: SessionRef, result: TraceResult];
  "daiku/grants/list": [params: Nothing, result: GrantsResult];
  "daiku/grants/revoke": [params: GrantRef, result: GrantsResult];
  "daiku/work/list": [params: WorkListParams, result: WorkListResult];
  "daiku/work/watch": [params: WorkWatchParams, result: WorkWatchResult];
  "daiku/work/show": [params: WorkItemRef, result: WorkItem];
  "daiku/work/pause": [params: WorkItemRef, result: WorkItem];
  "daiku/work/resume": [params: WorkItemRef, result: WorkItem];
  "daiku/work/cancel": [params: WorkItemRef, result: WorkItem];
  "daiku/work/retry": [params: WorkItemRef, result: WorkItem];
  "daiku/work/takeOver": [params: WorkItemRef, result: WorkPlace];
  "daiku/playbook/list": [params: PlaybookListParams, result: PlaybookListResult];
  "daiku/playbook/search": [params: PlaybookSearchParams, result: PlaybookSearchResult];
  "daiku/playbook/show": [params: PlaybookRef, result: PlaybookShowResult];
  "daiku/playbook/add": [params: PlaybookAddParams, result: PlaybookChange];
  "daiku/playbook/update": [params: PlaybookUpdateParams, result: PlaybookChange];
  "daiku/playbook/remove": [params: PlaybookRef, result: PlaybookChange];
  "daiku/playbook/deltas": [params: PlaybookDeltasParams, result: PlaybookDeltasResult];
  "daiku/playbook/review": [params: PlaybookReviewParams, result: PlaybookReviewResult];
  "daiku/playbook/watch": [params: PlaybookWatchParams, result: PlaybookWatchResult];
  "daiku/models": [params: Nothing, result: ModelsResult];
  "daiku/tools": [params: Nothing, result: ToolsResult];
  "daiku/doctor": [params: Nothing, result: DoctorResult];
  "daiku/agents": [params: Nothing, result: AgentsResult];
}

/** Requests, server to client, where the client offered it: method -> [params, result]. */
export interface ClientRequests {
  "daiku/languageModel": [params: LanguageModelParams, result: LanguageModelResult];
  "daiku/languageModel/list": [params: Nothing, result: EditorModelsResult];
  "daiku/editor/diagnostics": [params: EditorDiagnosticsParams, result: EditorDiagnosticsResult];
  "daiku/editor/definition": [params: EditorPlaceParams, result: EditorLocationsResult];
  "daiku/editor/references": [params: EditorPlaceParams, result: EditorLocationsResult];
  "daiku/editor/save": [params: EditorSaveParams, result: null];
  "daiku/editor/notebook": [params: EditorFileParams, result: EditorNotebook];
  "daiku/editor/editNotebook": [params: EditNotebookParams, result: EditNotebookResult];
}

/** Notifications, server to client: method -> params. */
export interface Notifications {
  "$/progress": { token: number | string; value: Chunk };
}

/** Providers of models that take an API key, with their names for people. */
export const KEYED_PROVIDERS = {
  "anthropic": "Anthropic",
  "openai": "OpenAI",
  "gemini": "Google Gemini",
  "compatible": "OpenAI-compatible"
} as const;

/** Names of providers by what a person needs for them: a key, or a server on their own machine. */
export const PROVIDERS_BY_NEED = {
  "key": [
    "Anthropic",
    "OpenAI",
    "Google Gemini"
  ],
  "server": [
    "Ollama",
    "LM Studio"
  ]
};

/** The version of this contract. */
export const PROTOCOL = 1;

/** Carried out by the server through workspace/executeCommand. */
export const SERVER_COMMANDS = [
  "daiku.newChat",
  "daiku.plan",
  "daiku.research",
  "daiku.generateCode",
  "daiku.runCommands",
  "daiku.explain",
  "daiku.fix",
  "daiku.writeTests",
  "daiku.document",
  "daiku.review",
  "daiku.commitMessage",
  "daiku.undo",
  "daiku.stop",
  "daiku.resume",
  "daiku.doctor"
] as const;

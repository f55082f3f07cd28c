// GENERATED from server/daiku/api and domain/events.py by .dev/gen.py; do not edit, run `npm run gen`.

/** Any JSON object. */
export type JsonObject = { [key: string]: unknown };

/** `content`: the text as the person edited it; none where it is taken as it is. */
export interface AcceptedDelta {
  id: string;
  content?: string | null;
}

/** The agent of a run has ended: written before `run_finished`, however the run ends. `usage` is what the agent used itself, without the agents that it handed work to. */
export interface AgentEnd {
  usage: Usage;
}

export interface AgentInfo {
  name: string;
  description: string;
  tools: string[];
  origin: string;
}

/** The agent of a run begins: written with `run_started`, once, also where the run is resumed. `model` is what it was asked to use; empty where none is asked. */
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

/** May this be done? `preview` is exactly what will happen (a diff or the command); `remember` says in words what "always" would mean, empty where it cannot be remembered. */
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

/** What a stage is given: the request, and what the stages before it handed over so far. The coder gets plan, step and findings (R0.102); the runner also the edits; the reporter everything. */
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

/** B3.2: a bullet that was found, and how well by vectors, by words and together (0 to 1). `resting`: it is known and would fit, but what runs showed of it is below the least confidence, so no run is told it. */
export interface BulletHit {
  bullet: PlaybookBullet;
  vectorScore: number;
  bm25Score: number;
  combinedScore: number;
  resting: boolean;
}

/** What one run showed of a bullet, and the place in its session that decided it. `version` is that of the text that the run was told (0: not known); what was about a text that said something else is not `counted`. */
export interface BulletObservation {
  verdict: "helpful" | "harmful" | "neutral";
  why: "not_cited" | "nothing_shown" | "run_cancelled" | "run_failed" | "run_limited" | "run_looped" | "unclear" | "command_passed" | "command_failed" | "command_missing" | "command_replaced" | "command_refused" | "acceptance_met" | "checks_passed" | "edits_kept" | "edits_accepted" | "edits_refused" | "edits_rejected" | "edits_restored" | "praised" | "objected" | "model_judged" | "";
  place: PlaybookPlace;
  version: number;
  counted: boolean;
}

/** What a Reflector says of one bullet that a run was told. */
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

/** One place of a change map (R1.95): code points of the OLD text, half-open, sorted, no overlap (C1.8). An insert has `end == start` and a `text`, a delete no text, a replace both. */
export interface Change {
  op: ChangeOp;
  start: number;
  end: number;
  text?: string;
}

/** Adjacent lines that changed. Lines count from 1; a side without lines names the line before it. `text` is the changed lines alone, with `-` or `+` before each (git's note where the last line has no end). `touched`: the person changed lines of it since; rejecting a whole file leaves it. */
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

/** What a change does with its place of the old text (R1.94). */
export type ChangeOp = "insert" | "delete" | "replace";

/** One file that a session changed and that is not decided on yet. `before` is its old name where it was renamed. A file without hunks (empty, binary, only renamed) is decided on as a whole. */
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

/** Without `sessionId` those of every session about this folder: a file stands there once for each that changed it. */
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

/** One sentence of a report with what it rests on; without proof it is an assertion and is shown as one. `unfit`: set in journals of earlier versions, which judged the sentence; it is shown as not proven. */
export interface Claim {
  text: string;
  proofs: Proof[];
  unfit: boolean;
}

/** `initializationOptions.client`: what the client does itself. */
export interface ClientOffer {
  approvals?: boolean;
  languageModel?: boolean;
  editor?: boolean;
  commands?: boolean;
  locale?: string | null;
}

/** `instruction`, or the plan (and one of its steps) to carry out. */
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

/** A command that was run. One that was refused or never started has exit code 1. */
export interface CommandOutcome {
  command: string;
  exitCode: number;
  output: string;
  callId: string;
  ended: boolean;
  unchanged?: boolean;
}

/** `commands` to run as they are, or an `instruction`, the plan or one of its steps that the runner turns into commands. */
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

/** `not_run`: of the commands that were given, those behind the first that failed. */
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

/** The runner hands over every command that it really ran, in order, and its notes. */
export interface CommandsRun {
  kind: "commands";
  commands: CommandOutcome[];
  notes: string;
}

/** History up to here was replaced by `summary`; the last `kept` messages stay as they are. The model is told of the files beside the summary: those that it only read, and those that were changed. */
export interface Compacted {
  summary: string;
  kept: number;
  beforeTokens: number;
  afterTokens: number;
  filesRead: string[];
  filesChanged: string[];
}

/** Something that the person pointed at; `uri` or text, as its kind needs. `path` is the file's place in the workspace, as tools name it; it is set when a run starts. */
export interface ContextItem {
  kind: "file" | "selection" | "diagnostics" | "terminal" | "url" | "text" | "symbol";
  uri?: string;
  path?: string;
  range?: Range;
  text?: string;
}

/** Something that the person pointed at; `uri` or text, as its kind needs. `path` is the file's place in the workspace, as tools name it; it is set when a run starts. */
export interface ContextItemInput {
  kind: "file" | "selection" | "diagnostics" | "terminal" | "url" | "text" | "symbol";
  uri?: string | null;
  path?: string | null;
  range?: Range | null;
  text?: string | null;
}

/** One thing that a text is judged by, and how much it counts. */
export interface Criterion {
  id: string;
  text: string;
  weight: number;
}

/** B3.4: one change that a Curator asks for. `id` is the bullet that it is about, `ids` those that are merged. */
export interface CurationOperation {
  type: "ADD" | "UPDATE" | "MERGE" | "REMOVE";
  section: string;
  content: string;
  id: string;
  ids: string[];
}

/** Where the person's cursor is in the editor. */
export interface Cursor {
  uri: string;
  position: Position;
}

/** Without `path` all files, without `hunkIds` the whole file. */
export interface DecideParams {
  sessionId: string;
  decision: "accept" | "reject";
  path?: string | null;
  hunkIds?: string[] | null;
}

export interface Delta {
  text: string;
}

/** One thing that was looked at. `mend` says what to do about it; a client may offer it as a button: the `action` is its own, the `command` is for a terminal, where the person sees it before it runs. */
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

/** A document, or a part of it, with what a stage has to know of it. `text` is what is worked on; of the whole document as a person has it where the machine is given it, of a part `part` of `parts` where a stage is. */
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

/** A document (a file URI) and what is to be done with it; with `range` only with these lines. */
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

/** `patch` in code points of the document as it stood, `edits` the same by line and character; absent and empty where nothing is to be changed, or a guard blocked it. */
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

/** What a window left out: how many chunks lie below `beforeSeq`, and what was used in them. */
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

/** The edit that a person asked for by pointing: changes of this file, or of these lines of it, are not asked about in this run. Everything else is, as the run's approvals say. */
export interface EditGrant {
  uri: string;
  range?: Range | null;
}

/** `expected`: the cells' texts that the edit was made against; others are refused. */
export interface EditNotebookParams {
  uri: string;
  expected: string[];
  cells: NewCell[];
}

export interface EditNotebookResult {
  applied: boolean;
  reason?: string;
}

/** One cell of an open notebook. `uri` is its own document's; `id` the notebook format's, where it has one. */
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

/** Diagnostics of `uri`; of all files if it is absent. `settle`: wait until those of these files are up to date, and add only the errors of all others. */
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

/** A model that the editor lends; `context` in tokens. */
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

/** A notebook as the editor has it, unsaved changes included; without `cells` it is not open there. */
export interface EditorNotebook {
  dirty?: boolean;
  cells?: EditorCell[] | null;
}

/** `position` in the units of the negotiated position encoding, as everywhere on this wire. */
export interface EditorPlaceParams {
  uri: string;
  position: Position;
}

/** Documents to save so that commands see our edit; before it, they had no unsaved changes. */
export interface EditorSaveParams {
  uris: string[];
}

/** The coder hands over the files that it changed, as they really were changed, and its notes. */
export interface EditsMade {
  kind: "edits";
  files: FileStat[];
  checkpoints: string[];
  notes: string;
}

/** One thing that holds around a run (its date, its mode, what git says), as the model reads it. */
export interface EnvironmentFact {
  name: string;
  text: string;
}

/** The scores of a text by a rubric (R1.66). `total` is the weighted mean, 0 to 1. `cached`: no model was asked now, for the same text was judged by the same rubric and model before. */
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

/** What is wrong (`message`), and what the person can do (`hint`). As an event: the run meets it. */
export interface Failure {
  kind: "usage" | "no_provider" | "auth" | "rate_limit" | "timeout" | "connection" | "overloaded" | "bad_request" | "not_found" | "context_overflow" | "stream_cut" | "content_filter" | "format" | "tool" | "guardrail" | "handoff_depth" | "stale" | "busy" | "limit" | "plan" | "cancelled" | "internal";
  message: string;
  hint: string;
  retryable: boolean;
  cause?: string;
}

/** What a person sees of one changed file: lines added and removed. */
export interface FileStat {
  path: string;
  kind: "create" | "edit" | "delete" | "rename";
  added: number;
  removed: number;
}

/** A page that a web tool really returned for `query`; `text` is what stands there, as far as it was read. */
export interface Finding {
  query: string;
  url: string;
  title: string;
  text: string;
}

/** The researcher hands over what was found, by address, and what it says of it; nothing found is valid too. */
export interface Findings {
  queries: string[];
  results: Finding[];
  askUser: string;
  kind: "findings";
  notes: string;
}

/** A task, and the name of the prompt template that it is put into. */
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

/** How a task was answered with the playbook's help: the Trajectory of its Generator. */
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

/** `what` says in words what was answered; `key` names it to `daiku/grants/revoke`. */
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

/** A nested run came back: how it ended, its words, what it hands over (None: nothing of a kind, or nothing that could be used), what it did (with the plans that it changed) and what it used (also of the lessons that it was told), and how much of what it wanted a person rejected. `problem` says why it is of no use. */
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

/** A nested run begins: `run` is its id, `call_id` the call of the parent that it answers. */
export interface HandoffStart {
  from: string;
  to: string;
  request: string;
  run: string;
  callId: string;
}

/** An entry of the playbook was added, changed or removed, or (`proposed`) waits for a person; the playbook tells of it (issue 12). */
export interface HeldBullet {
  bulletId: string;
  change: string;
  content: string;
  why: string;
}

/** A picture for the model: base64 data and its media type (image/png, …). */
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

/** `settings` has the shape of the TOML file (PROTOCOL 2). */
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

/** A command (or a call of another program's tool) that ran after a checkpoint: its effects stay. */
export interface Irrevocable {
  command: string;
  exitCode?: number;
  time: string;
}

/** Something to be put right in a text, and what is to stand there instead. Its place is `start` and `end` (code points, half-open), or the one place where `quote` stands; with both, the quote has to stand there. */
export interface Issue {
  replacement: string;
  quote: string;
  start?: number;
  end?: number;
  reason: string;
}

/** How far the plan of an item is: steps done, steps in all, and the name of the one under way. */
export interface ItemProgress {
  done: number;
  total: number;
  step: string;
}

export interface LanguageModelMessage {
  role: "system" | "user" | "assistant";
  parts: (TextPart | ThinkingPart | ImagePart | CallPart | ResultPart)[];
}

/** The client streams `$/progress {token: partialResultToken, value: Part}` while it answers. */
export interface LanguageModelParams {
  model: string;
  messages: LanguageModelMessage[];
  tools: LanguageModelTool[];
  partialResultToken?: number | string;
}

/** The whole reply, what was streamed included; tokens 0 where the editor does not tell. */
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

/** The place in a session that a change was learnt from: a chunk of a run. */
export interface LearntFrom {
  sessionId: string;
  runId: string;
  seq: number;
}

/** An unfinished line that changes put into a file (`count` times; below zero: took away). */
export interface LeftoverPlace {
  path: string;
  text: string;
  count: number;
}

/** A bullet of the playbook as a run was told it; its `version` rises with every change of its text. */
export interface Lesson {
  id: string;
  version: number;
  text: string;
}

/** A whole message, durable: a user's (also steering), or a reply that closes its deltas. `calls` are what the reply wants done, before any guard; each gets one `tool_call` and one `tool_response`. `opaque` is the provider's own and must go back to it unchanged. `seen` is how many messages the reply was made from: what was said meanwhile comes after it. `reminder`: a user's message that is none of a person's, but Daiku's own word to the model. `partial` is the draft of a reply that was cut off: shown, never an answer; a resumed run asks the model again. */
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

/** A model that can be chosen; `id` is `provider/name`. Tokens are 0 where unknown. */
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

/** What a nested run did, as its parent counts it: `core.proof.evidence.Evidence` without what is under way. */
export interface NestedEvidence {
  files: FileStat[];
  checkpoints: string[];
  commands: CommandOutcome[];
  proofs: Proof[];
  leftovers: LeftoverPlace[];
  edits: number[];
  acted: boolean;
}

/** A cell as it should stand: `at` is the number (from 0) of the cell that it was; absent: a new one. */
export interface NewCell {
  at?: number;
  kind: "code" | "markup";
  language: string;
  text: string;
}

/** No params. */
export type Nothing = Record<string, never>;

/** A message to the person. The model is told of `rules`, which stay until the session ends, and of what has changed in `environment`. `attempt`: so many calls of a model failed in a row and it is called again; the last notice counts. */
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

/** A piece of another text: where it stands, how like it is (0 to 1), its words. */
export interface Passage {
  source: string;
  text: string;
  score: number;
}

/** A whole new text and the changes that lead to it from the old one (R1.96): applying `change_map` to the old text gives `new_text`. */
export interface PatchJSON {
  newText: string;
  changeMap: Change[];
}

/** A patch of the text that the stage was given, and the issues that could not be placed in it. */
export interface PatchMade {
  kind: "patch";
  patch: PatchJSON;
  unplaced: Unplaced[];
  notes: string;
}

/** A goal and its steps (R4.31–R4.33). `focus`: what the work is about, in a few words. `dropped_checks`: those of unfinished steps that a plan made anew left out. */
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

/** The person deleted a plan: it is in no list any more, and no run of the session knows it. */
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

/** A plan with how far it is, as the requests answer that are about one. */
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

/** The planner hands over a plan with at least one step. */
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

/** The plan to work, or one step of it; without a session in the one that it is in. */
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

/** Result of a plan's run, the plan after it, and the claims with their proofs. */
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

/** How far a plan is as a run ends: its steps by what became of them; `open` are neither done nor failed. */
export interface PlanStanding {
  planId: string;
  name: string;
  status: "draft" | "approved" | "in_progress" | "completed" | "failed";
  done: number;
  total: number;
  failed: number;
  open: number;
}

/** New values of a plan's fields; a field that is absent stays as it is. */
export interface PlanUpdateParams {
  planId: string;
  name?: string | null;
  goal?: string | null;
  summary?: string | null;
  steps?: StepInput[] | null;
}

/** With `propose` it waits for review, as what was learnt does. */
export interface PlaybookAddParams {
  section: string;
  content: string;
  keywords?: string[];
  scope?: "repository" | "user";
  propose?: boolean;
}

/** One lesson, as people and programs see it. `id` is `<slug>-00001`; `helpful` and `harmful` are sums of what runs showed and of what came with an import, as long as its text says the same. */
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

/** What was changed, or proposed, and the bullet as it stands now; none where an addition is only proposed. `redacted`: secrets were taken out of the text. */
export interface PlaybookChange {
  deltas: PlaybookDelta[];
  bullet?: PlaybookBullet;
  redacted: boolean;
}

/** A change of a playbook: proposed, or applied with how everything it touched stood `before` and `after`. `bullet_id` is what is changed (the new id of an `add` once it is applied), `bullet_ids` what a `merge` takes in; an `update` without keywords leaves them, with `no_keywords` it takes them away; `doubts` are for the person who reviews it; `again` is where it was learnt once more after a person had rejected it. */
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

/** Without a scope those of both playbooks. `newest`: only so many, those that were decided on last. */
export interface PlaybookDeltasParams {
  scope?: "repository" | "user" | null;
  statuses?: ("proposed" | "applied" | "rejected" | "undone")[];
  newest?: number | null;
}

/** Oldest first; the newest of them in the order of their last decision. */
export interface PlaybookDeltasResult {
  deltas: ShownDelta[];
}

/** Without a scope those of both playbooks, the repository's first; without a section all of them; without `all` only those that are active. */
export interface PlaybookListParams {
  scope?: "repository" | "user" | null;
  section?: string;
  all?: boolean;
}

/** In the order of their adding. `resting` are the ids of those that no run is told: what runs showed of them is below the least confidence. `sections` are the names that a bullet can be added to; a person may name others. */
export interface PlaybookListResult {
  bullets: PlaybookBullet[];
  resting: string[];
  sections: string[];
}

/** A place in a session that something was learnt from; `title` is that of the session, empty where it is gone. */
export interface PlaybookPlace {
  sessionId: string;
  runId: string;
  seq: number;
  title: string;
}

/** A bullet, by its id: the two playbooks have no ids in common. */
export interface PlaybookRef {
  id: string;
}

/** Decided in this order, each by itself. `accept` takes up what was rejected, too. `undo` takes back changes that were applied; what was rejected waits again. */
export interface PlaybookReviewParams {
  accept?: AcceptedDelta[];
  reject?: string[];
  undo?: string[];
}

/** The changes as they stand now, and those that could not be decided so. */
export interface PlaybookReviewResult {
  decided: PlaybookDelta[];
  refused: RefusedDelta[];
  redacted: boolean;
}

/** Without a scope in both playbooks; without `topK` as many as the settings say. */
export interface PlaybookSearchParams {
  query: string;
  scope?: "repository" | "user" | null;
  section?: string;
  topK?: number | null;
}

/** Best first. */
export interface PlaybookSearchResult {
  hits: BulletHit[];
}

/** A bullet, every change of it, oldest first, and what runs showed of it. */
export interface PlaybookShowResult {
  bullet: PlaybookBullet;
  history: ShownDelta[];
  observations: BulletObservation[];
}

/** What is left out stays as it is; `keywords: []` takes them away. `active`: false disables the bullet, true enables it again. */
export interface PlaybookUpdateParams {
  id: string;
  content?: string | null;
  keywords?: string[] | null;
  active?: boolean | null;
}

/** `revision`: the one that the client has; empty where it has none. */
export interface PlaybookWatchParams {
  revision?: string;
}

/** Answered as soon as a playbook is not that of `revision` any more; the `bullet` events of what a run here taught are then in its session, after the run's end. `active` counts the bullets that are active in both playbooks, `waiting` the changes that wait for a person. `repository`: there is a playbook of this folder. */
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

/** What a claim rests on: a command's exit code, the diagnostics of a path, the diff of a checkpoint, or the word of a person about a check that nothing here can show. `ref` finds it in the journal: the id of the call or of the checkpoint. */
export interface Proof {
  kind: "exit_code" | "diagnostics" | "diff" | "person";
  subject: string;
  ref: string;
  ok: boolean;
  value: string;
  remarks: ("passed_before" | "no_tests" | "check_changed")[];
}

/** A provider, and why it cannot be used where it cannot. */
export interface ProviderState {
  provider: string;
  usable: boolean;
  error?: Failure;
  origin: string;
}

/** Results of tools that the model no longer needs in full were shortened to save room. */
export interface Pruned {
  results: ShortenedResult[];
  beforeTokens: number;
  afterTokens: number;
}

export interface Range {
  start: Position;
  end: Position;
}

/** A change by line and character of the old text, in the units that editor and server agreed on. */
export interface RangeEdit {
  range: Range;
  newText: string;
}

/** Something remembered from earlier sessions that fits the request, and how well (0 to 1). */
export interface Recalled {
  id: string;
  text: string;
  score: number;
}

/** What the workspace's references hold that is near to the new text; `by` names how it was searched. */
export interface ReferencesFound {
  kind: "references";
  passages: Passage[];
  by: string;
}

/** What a model made of the run around, which had ended (issue 12): what it saw in it, and the changes of the playbook that it asks for. Neither is carried out by being here. */
export interface Reflected {
  reflection: Reflection;
  operations: CurationOperation[];
}

/** B3.3: why a run went as it did, what was wrong in it and why, what would have been right; what is worth keeping of that, and what each bullet was worth. */
export interface Reflection {
  reasoning: string;
  errorIdentification: string;
  rootCauseAnalysis: string;
  correctApproach: string;
  keyInsight: string;
  insights: string[];
  tags: BulletTag[];
}

/** A change that could not be decided so, and why. */
export interface RefusedDelta {
  id: string;
  message: string;
}

/** What came of the work, in words, and each claim with its proofs. `from_records`: no model said it. */
export interface Report {
  text: string;
  claims: Claim[];
  fromRecords: boolean;
}

/** The reporter hands over its report. */
export interface ReportMade {
  kind: "report";
  report: Report;
}

/** A `question`, or the plan to find out for. */
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

/** Queries also where nothing could be looked up. */
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

/** `checkpointId` brings back what was there before restoring (redo). */
export interface RestoreResult {
  files: FileStat[];
  cannotUndo: Irrevocable[];
  checkpointId?: string;
}

/** Files were brought back to `checkpoint_id`; `redo` is the checkpoint that was taken before it. */
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

/** The person accepted or rejected changes of one file: `hunks` of them, 0 where there are none to count. `checkpoint_id` holds how the review stood after it, and the files as they were before. `lines` are those that a rejection took away (`+`) and brought back (`-`). */
export interface Review {
  decision: "accept" | "reject";
  path: string;
  hunks: number;
  checkpointId?: string;
  lines?: string;
}

/** What texts are judged by. */
export interface Rubric {
  name: string;
  criteria: Criterion[];
}

/** A rules file below a root, as it is told to the model; without trust it is data. */
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

/** Where a run stops by itself; 0 is no limit (X.24). */
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

/** Where a run stops by itself; 0 is no limit (X.24). */
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

/** First event of a run. `prompt` is what the person said; `images` and `context` came along with it. With `calls` the run carries these out, one by one, and asks no model. `driven`: its replies are worked out, and limits of a model's rounds do not bound them. `told` is what the agent reads in place of the prompt, made from `brief`; `tainted`: text from outside is in it. `rounds_before`: so many of `limits.max_rounds` the runs around it had used. `environment` is what holds around it, all of it: the model is told what it was not told before; so it is with what was `recalled`, and with the `lessons` of the playbook that fit its request, each of whose versions is told once in a session. */
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

/** An agent hands over what it said, where it has nothing of its own kind: why there is no plan, for one. */
export interface SaidInWords {
  kind: "words";
  text: string;
}

/** How well a text meets a criterion (0 to 4), why, and what would be better. */
export interface Score {
  criterion: string;
  score: number;
  why: string;
  advice: string;
}

/** Which parts of a long document are concerned, by their numbers from 1. */
export interface SectionsChosen {
  kind: "sections";
  numbers: number[];
}

/** `capabilities.experimental.daiku` of the initialize answer. */
export interface ServerOffer {
  version: string;
  protocol: number;
  methods: string[];
  commands: string[];
}

/** How a configured MCP server stands; none is started by asking. Its tools are those that it offered when it last ran. */
export interface ServerState {
  name: string;
  status: "ready" | "starting" | "down" | "unasked" | "changed" | "rejected" | "unusable";
  tools: string[];
  why: string;
  hint: string;
}

/** A conversation; `status` is that of its last run (`idle`: none yet, `waiting`: it asks a person something, `interrupted`: the process ended under it). */
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

/** With `last` about so many of the last chunks (below `beforeSeq`, where that is given), from the start of a message on; else everything after `afterSeq`. */
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

/** The result of the call `call_id`, the message `at` (from 0) of the conversation, reads `text` from now on. */
export interface ShortenedResult {
  at: number;
  callId: string;
  text: string;
}

/** A change with what a person needs to judge it: the bullets that it touches as they stand now, the difference that it makes or made to their texts (under `@@ id @@` lines that begin with `-`, `+` or a space; keywords stand last, labelled in the client's language), and the places of its evidence. */
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

/** How like the new text is to the nearest text that it was compared with (R1.63-R1.65). */
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

/** A milestone; `acceptance` are commands or diagnostics checks that must pass (R4.28–R4.30). `check_seconds`: how long one of them may take, where limits.check_seconds is not meant. `own_checks`: those of them that a person wrote, which a plan made anew keeps. */
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

/** A milestone; `acceptance` are commands or diagnostics checks that must pass (R4.28–R4.30). `check_seconds`: how long one of them may take, where limits.check_seconds is not meant. `own_checks`: those of them that a person wrote, which a plan made anew keeps. */
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

/** What came of a step's tasks (R4.40): the numbers are those of the execution log. */
export interface TaskReport {
  status: "completed" | "failed";
  succeeded: number;
  failed: number;
  summary: string;
  cause: string;
  nextAction: string;
}

/** The handover of the agent that splits a step: its tasks in order, at least one. */
export interface TasksMade {
  kind: "tasks";
  tasks: Task[];
}

/** The handover of the agent that reports on a step's tasks. */
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

/** The model's list of what is to do, whole: it takes the place of the one before. */
export interface Todo {
  items: TodoItem[];
}

/** One thing to do, as the model wrote it for itself. */
export interface TodoItem {
  title: string;
  status: "pending" | "in_progress" | "completed";
}

/** One call that the model asked for. `tool` is the canonical `namespace/tool`. `malformed` holds the argument text when it was not a JSON object; such a call is answered with an error, never run. `notes` say how its arguments were read where the model wrote them in another way; its result repeats them. */
export interface ToolCall {
  id: string;
  tool: string;
  args: JsonObject;
  reasoning?: string;
  malformed?: string;
  notes: string[];
}

/** The call is under way (or refused: its response follows at once). Never written twice. */
export interface ToolCallEvent {
  id: string;
  tool: string;
  args: JsonObject;
  reasoning?: string;
}

/** A picture that a tool returns: base64 data and its media type. */
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

/** What came of a call. The model reads the English of `result`. */
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

/** The spans by where they begin. `until` is when the last of them ended, or now. */
export interface TraceResult {
  session: Session;
  spans: TraceSpan[];
  until: string;
}

/** One stretch of work. `parent` is the key of the span around it, absent for what the person started; `seq` is where it begins in the session. `duration_ms` is absent while it is under way. `usage` is what an agent used itself so far, or a call of a model; `error` says why it did not end well. */
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

/** An issue that was not turned into a change, and why. */
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

/** Tokens of one call or a whole run; `cost` in USD, None where no price is known. As an event: one call. */
export interface Usage {
  model: string;
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number;
  cost?: number;
}

/** A work item as commands, editors and scripts see it. `error` says why it failed, waits or was stopped; `wanted` what was asked of it while it is worked, and has not come about yet; `usage` what its runs took of models so far, None where there was none. */
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

/** `item` is named like `gitlab:group/name#3` or `files:name`. */
export interface WorkItemRef {
  item: string;
}

/** Without a state all of them. */
export interface WorkListParams {
  state?: "queued" | "processing" | "paused" | "waiting" | "done" | "failed" | "dead" | "stopped" | null;
}

/** Last changed first. */
export interface WorkListResult {
  items: WorkItem[];
}

/** An item that nobody works now, and the folder in which its files are: empty where that is not on this machine. An item that is still `processing` pauses at its next step. */
export interface WorkPlace {
  item: WorkItem;
  folder: string;
}

/** `revision`: the one that came with the items that the client has; empty where it has none. */
export interface WorkWatchParams {
  revision?: string;
}

/** The items as they are now, last changed first. */
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

// Makes chunks for tests as the server would send them.

import type { Chunk, Envelope, Plan } from "../../src/contract.gen";

type Data<T extends Chunk["type"]> = Extract<Chunk, { type: T }>["data"];

/** Numbers and dates what one session says. */
export function session(name = "s1", run = "r1") {
  let seq = 0;
  const start = Date.parse("2026-11-01T10:00:00.000Z");
  return <T extends Chunk["type"]>(type: T, data: Partial<Data<T>>, over: Partial<Envelope> = {}): Chunk => {
    seq += 1;
    const time = new Date(start + seq * 1000).toISOString();
    return {
      seq,
      time,
      session: name,
      run,
      agent: "coordinator",
      type,
      data: { ...DEFAULTS[type], ...data },
      ...over,
    } as unknown as Chunk;
  };
}

export const PLAN: Plan = {
  planId: "plan_00000001",
  name: "Repair the cart",
  goal: "All tests pass",
  focus: "",
  summary: "",
  status: "draft",
  droppedChecks: [],
  steps: [
    {
      stepId: "step_00000001",
      name: "Find it",
      description: "",
      status: "pending",
      dependsOn: [],
      acceptance: [],
      checkSeconds: {},
      ownChecks: [],
      taskList: [],
    },
  ],
};

const usage = { model: "lab", promptTokens: 10, completionTokens: 5, cachedTokens: 2 };

const DEFAULTS: { [T in Chunk["type"]]: Data<T> } = {
  run_started: {
    prompt: "Hello",
    mode: "act",
    model: "lab",
    limits: {
      ...{ maxRounds: 50, maxTokens: 0, maxCost: 0, maxSeconds: 0, maxToolErrors: 3, maxRepeats: 3, maxActions: 50 },
      ...{ maxRepairs: 2, maxReplans: 2, maxAttempts: 10, checkSeconds: 600, maxVerifications: 2, maxEqualErrors: 0 },
    },
    context: [],
    images: [],
    calls: [],
    driven: false,
    told: "",
    environment: [],
    recalled: [],
    lessons: [],
    roundsBefore: 0,
    tainted: false,
    mayEdit: true,
  },
  run_finished: { status: "completed", text: "", usage, usedBullets: [], reasons: [], unchecked: false },
  agent_start: { model: "lab" },
  agent_end: { usage },
  handoff_start: { from: "coordinator", to: "researcher", request: "look it up", run: "", callId: "" },
  handoff_end: {
    ...{ from: "coordinator", to: "researcher", result: "found", run: "", callId: "" },
    ...{ status: "completed", problem: "", rounds: 1, tainted: false, unattended: false, rejected: 0, plans: [] },
    usedBullets: [],
    reasons: [],
    refused: [],
  },
  plan_deleted: { planId: "plan_00000001", name: "" },
  message: {
    ...{ role: "assistant", text: "", agent: "coordinator", thinking: "", calls: [], opaque: {} },
    ...{ partial: false, finish: "stop" },
  },
  delta: { text: "" },
  thinking: { text: "" },
  tool_call: { id: "c1", tool: "files/read", args: { path: "a.py" } },
  tool_output: { id: "c1", text: "" },
  tool_response: {
    id: "c1",
    tool: "files/read",
    ok: true,
    outcome: "done",
    result: "",
    durationMs: 1,
    images: [],
    untrusted: false,
  },
  approval_asked: {
    approvalId: "a1",
    kind: "command",
    tool: "shell/run",
    args: { command: "npm test" },
    preview: "npm test",
    why: "",
    callId: "c1",
    remember: "",
    fromServer: false,
    hunks: 0,
  },
  approval_given: { approvalId: "a1", decision: "allow_once", unattended: false },
  input_asked: { inputId: "i1", question: "Which one?", choices: ["a", "b"], callId: "c1", fromServer: false },
  input_given: { inputId: "i1", text: "a", unattended: false },
  reflected: {
    reflection: {
      ...{ reasoning: "", errorIdentification: "", rootCauseAnalysis: "", correctApproach: "", keyInsight: "" },
      ...{ insights: [], tags: [] },
    },
    operations: [],
  },
  plan: { plan: PLAN },
  edit: { files: [{ path: "a.py", kind: "edit", added: 1, removed: 1 }], checkpointId: "cp1", callId: "c1", diff: "" },
  checkpoint: { checkpointId: "cp1", files: ["a.py"] },
  review: { decision: "accept", path: "a.py", hunks: 1 },
  restored: { checkpointId: "cp1", files: [{ path: "a.py", kind: "edit", added: 1, removed: 1 }], cannotUndo: [] },
  usage,
  notice: { level: "info", text: "note", attempt: 0, rules: [], environment: [] },
  error: { kind: "auth", message: "no", hint: "set a key", retryable: false },
  compacted: {
    summary: "before",
    kept: 2,
    beforeTokens: 1000,
    afterTokens: 100,
    filesRead: ["a.py"],
    filesChanged: [],
  },
  pruned: { results: [{ at: 2, callId: "c1", text: "[Left out]" }], beforeTokens: 1000, afterTokens: 400 },
  todo: { items: [{ title: "Read a.py", status: "in_progress" }] },
  bullet: { bulletId: "b1", change: "add", content: "use uv", why: "" },
};

export const TYPES = Object.keys(DEFAULTS) as Chunk["type"][];

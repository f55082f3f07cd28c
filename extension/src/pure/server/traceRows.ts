// A session's trace as rows of a tree: what belongs to what, what it took, and where it stands in time.

import type { TraceResult, TraceSpan } from "../../contract.gen";

export interface TraceRow {
  span: TraceSpan;
  level: number;
  /** Whether others stand below it. */
  parent: boolean;
  tokensIn: number;
  tokensOut: number;
  cost: number | undefined;
  durationMs: number;
  /** Where its bar begins and how long it is, in hundredths of what the person started. */
  from: number;
  width: number;
}

export interface TraceSums {
  agents: number;
  chats: number;
  tools: number;
  tokensIn: number;
  tokensOut: number;
  cost: number | undefined;
  durationMs: number;
  running: boolean;
}

type Used = Pick<TraceRow, "tokensIn" | "tokensOut" | "cost">;

const NOTHING: Used = { tokensIn: 0, tokensOut: 0, cost: undefined };

/** The rows, each before what is below it. An agent's tokens are those of its own calls of a model. */
export function traceRows({ spans, until }: TraceResult): TraceRow[] {
  const byKey = new Map(spans.map((span) => [span.key, span]));
  const below = new Map<string, TraceSpan[]>();
  for (const span of spans) {
    const around = span.parent !== undefined && byKey.has(span.parent) ? span.parent : "";
    const beside = below.get(around);
    if (beside) beside.push(span);
    else below.set(around, [span]);
  }
  const end = Date.parse(until);
  const durationOf = (span: TraceSpan): number => span.durationMs ?? Math.max(0, end - Date.parse(span.start));
  const rows: TraceRow[] = [];
  const add = (span: TraceSpan, level: number, top: TraceSpan): void => {
    const children = below.get(span.key) ?? [];
    const durationMs = durationOf(span);
    const whole = Math.max(1, durationOf(top));
    const from = Math.min(99.5, Math.max(0, (100 * (Date.parse(span.start) - Date.parse(top.start))) / whole));
    rows.push({
      ...{ span, level, parent: children.length > 0, durationMs, from },
      width: Math.min(100 - from, Math.max(0.5, (100 * durationMs) / whole)),
      ...(span.usage ? usedBy([span]) : usedBy(children.filter(({ kind }) => kind === "chat"))),
    });
    for (const child of children) add(child, level + 1, top);
  };
  for (const top of below.get("") ?? []) add(top, 1, top);
  return rows;
}

/** What the whole session took: of each call of a model once; of time what the person's runs took. */
export function traceSums(rows: readonly TraceRow[]): TraceSums {
  const of = (kind: TraceSpan["kind"]) => rows.filter(({ span }) => span.kind === kind);
  return {
    ...{ agents: of("agent").length, chats: of("chat").length, tools: of("tool").length },
    ...usedBy(of("chat").map(({ span }) => span)),
    durationMs: rows.reduce((sum, { level, durationMs }) => (level === 1 ? sum + durationMs : sum), 0),
    running: rows.some(({ span }) => span.status === "running"),
  };
}

const usedBy = (spans: readonly TraceSpan[]): Used =>
  spans.reduce<Used>(
    (sum, { usage }) => ({
      tokensIn: sum.tokensIn + (usage?.promptTokens ?? 0),
      tokensOut: sum.tokensOut + (usage?.completionTokens ?? 0),
      cost: usage?.cost === undefined || usage.cost === null ? sum.cost : (sum.cost ?? 0) + usage.cost,
    }),
    NOTHING,
  );

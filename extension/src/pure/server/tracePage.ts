// The page of a trace: a tree of agents, calls of models and tools, with tokens, cost, time and a bar for each.

import type { TraceSpan } from "../../contract.gen";
import { dollars, duration, tokens } from "../text/format";
import { escapeHtml, htmlPage } from "./page";
import { type TraceRow, type TraceSums, traceSums } from "./traceRows";

/** What the page asks for: a place of the chat, the trace anew, or as a text of its own. */
export type TracePressed = { open: { seq: number; callId: string } } | { act: "refresh" | "lines" };

/** What the page is sent while it is open. */
interface TraceDrawn {
  summary: string;
  rows: string;
}

export interface TraceWords {
  title: string;
  columns: { name: string; tokens: string; cost: string; time: string; course: string };
  kinds: Record<TraceSpan["kind"], string>;
  states: Record<TraceSpan["status"], string>;
  /** Why something did not end well; what is not among them is shown as it is. */
  errors: Partial<Record<string, string>>;
  acts: { refresh: string; lines: string; open: string };
  /** With holes `{0}` for numbers. */
  sums: { agents: string; chats: string; tools: string; in: string; out: string; retries: string };
  running: string;
  nothing: string;
  keys: string;
}

interface TracePage {
  words: TraceWords;
  rows: readonly TraceRow[];
  language: string;
  nonce: string;
}

const SIGNS: Record<TraceSpan["status"], string> = { running: "◌", ok: "✓", failed: "✗", cancelled: "–" };

const filled = (text: string, value: string | number): string => text.replace("{0}", String(value));

/** The whole page. It may run its own script and nothing else, and fetches nothing. */
export function tracePage({ words, rows, language, nonce }: TracePage): string {
  const { columns } = words;
  const heads = [columns.name, columns.tokens, columns.cost, columns.time, columns.course];
  const drawn = traceDrawn(words, rows);
  const body = `<p id="summary" role="status">${drawn.summary}</p>
<p class="buttons"><button data-act="refresh" class="first">${escapeHtml(words.acts.refresh)}</button><button data-act="lines">${escapeHtml(words.acts.lines)}</button><span class="dim">${escapeHtml(words.keys)}</span></p>
<div role="treegrid" aria-label="${escapeHtml(words.title)}" aria-readonly="true">
<div role="row" class="heads">${heads.map((head) => `<span role="columnheader">${escapeHtml(head)}</span>`).join("")}</div>
<div role="rowgroup" id="rows">${drawn.rows}</div>
</div>`;
  return htmlPage({ title: words.title, language, nonce, style: STYLE, script: SCRIPT, body });
}

/** The parts that change while a run is under way, as HTML. */
export function traceDrawn(words: TraceWords, rows: readonly TraceRow[]): TraceDrawn {
  return {
    summary: escapeHtml(rows.length === 0 ? words.nothing : summary(words, traceSums(rows))),
    rows: rows.map((row) => rowHtml(words, row)).join("\n"),
  };
}

function summary({ sums, running }: TraceWords, all: TraceSums): string {
  const parts = [
    filled(sums.agents, all.agents),
    filled(sums.chats, all.chats),
    filled(sums.tools, all.tools),
    filled(sums.in, tokens(all.tokensIn)),
    filled(sums.out, tokens(all.tokensOut)),
    ...(all.cost === undefined ? [] : [dollars(all.cost)]),
    duration(all.durationMs),
    ...(all.running ? [running] : []),
  ];
  return parts.join(" · ");
}

function rowHtml(words: TraceWords, row: TraceRow): string {
  const { span, level, parent } = row;
  const state = words.states[span.status];
  const error = span.error && span.error !== span.status ? (words.errors[span.error] ?? span.error) : "";
  const why = error ? `${state} (${error})` : state;
  const again = span.retries ? ` <span class="dim">${escapeHtml(filled(words.sums.retries, span.retries))}</span>` : "";
  const used = row.tokensIn || row.tokensOut ? `${tokens(row.tokensIn)} → ${tokens(row.tokensOut)}` : "";
  const data = `data-key="${escapeHtml(span.key)}" data-seq="${span.seq}" data-call="${escapeHtml(span.callId ?? "")}"`;
  return `<div role="row" class="${span.kind} ${span.status}" aria-level="${level}"${parent ? ' aria-expanded="true"' : ""} tabindex="-1" ${data}>
<span role="gridcell" class="name level-${Math.min(level, 8)}"><span class="twist" aria-hidden="true"></span><span class="sign" title="${escapeHtml(why)}" aria-hidden="true">${SIGNS[span.status]}</span><span class="kind">${escapeHtml(words.kinds[span.kind])}</span> <a title="${escapeHtml(words.acts.open)}">${escapeHtml(span.name || words.kinds[span.kind])}</a>${again}<span class="hidden">, ${escapeHtml(why)}</span>${error ? ` <span class="why">${escapeHtml(error)}</span>` : ""}</span>
<span role="gridcell" class="number">${escapeHtml(used)}</span>
<span role="gridcell" class="number">${row.cost === undefined ? "" : escapeHtml(dollars(row.cost))}</span>
<span role="gridcell" class="number">${escapeHtml(duration(row.durationMs))}</span>
<span role="gridcell" class="course" aria-hidden="true"><svg viewBox="0 0 100 8" preserveAspectRatio="none"><rect x="${row.from.toFixed(2)}" y="0" width="${row.width.toFixed(2)}" height="8"></rect></svg></span>
</div>`;
}

const SCRIPT = `
const host = acquireVsCodeApi();
const group = document.getElementById("rows");
const closed = new Set();
let current;
const all = () => [...group.children];
const level = (row) => Number(row.getAttribute("aria-level"));
const shown = () => all().filter((row) => !row.hidden);
function fold() {
  let hides = Infinity;
  for (const row of all()) {
    row.hidden = level(row) > hides;
    if (row.hidden) continue;
    hides = Infinity;
    if (!row.hasAttribute("aria-expanded")) continue;
    const open = !closed.has(row.dataset.key);
    row.setAttribute("aria-expanded", String(open));
    if (!open) hides = level(row);
  }
  const rows = shown();
  const mine = rows.find((row) => row.dataset.key === current) ?? rows[0];
  for (const row of all()) row.tabIndex = row === mine ? 0 : -1;
  return mine;
}
function go(row) {
  if (!row) return;
  current = row.dataset.key;
  fold();
  row.focus();
  row.scrollIntoView({ block: "nearest" });
}
function toggle(row, open) {
  if (!row.hasAttribute("aria-expanded")) return;
  if (open ?? closed.has(row.dataset.key)) closed.delete(row.dataset.key);
  else closed.add(row.dataset.key);
  fold();
}
const open = (row) => host.postMessage({ open: { seq: Number(row.dataset.seq), callId: row.dataset.call } });
function above(row) {
  const rows = all();
  return rows.slice(0, rows.indexOf(row)).findLast((one) => level(one) < level(row));
}
group.addEventListener("keydown", (event) => {
  const row = event.target.closest("[data-key]");
  if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
  const rows = shown();
  const at = rows.indexOf(row);
  const isOpen = row.getAttribute("aria-expanded");
  const acts = {
    ArrowDown: () => go(rows[at + 1]),
    ArrowUp: () => go(rows[at - 1]),
    Home: () => go(rows[0]),
    End: () => go(rows.at(-1)),
    ArrowRight: () => (isOpen === "false" ? toggle(row, true) : isOpen && go(rows[at + 1])),
    ArrowLeft: () => (isOpen === "true" ? toggle(row, false) : go(above(row))),
    Enter: () => open(row),
    " ": () => toggle(row),
  };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
});
document.addEventListener("click", ({ target }) => {
  const act = target.closest("button")?.dataset.act;
  if (act) return host.postMessage({ act });
  const row = target.closest("[data-key]");
  if (!row) return;
  go(row);
  if (target.closest("a")) open(row);
  else if (target.closest(".twist")) toggle(row);
});
window.addEventListener("message", ({ data }) => {
  document.getElementById("summary").innerHTML = data.summary;
  const had = group.contains(document.activeElement);
  group.innerHTML = data.rows;
  const mine = fold();
  if (had) mine?.focus();
});
// Of several requests the last one is open.
const tops = all().filter((row) => level(row) === 1);
for (const row of tops.slice(0, -1)) closed.add(row.dataset.key);
current = tops.at(-1)?.dataset.key;
fold()?.focus();`;

const STYLE = `
body { font-family: var(--vscode-font-family); font-size: var(--vscode-font-size); color: var(--vscode-foreground); }
main { padding: 0.5em 1em 2em; }
h1 { font-size: 1.4em; font-weight: 600; overflow-wrap: anywhere; }
.dim, .kind { color: var(--vscode-descriptionForeground); }
.buttons { display: flex; flex-wrap: wrap; gap: 0.5em; align-items: center; }
button { font: inherit; padding: 0.3em 0.9em; border: 1px solid var(--vscode-button-border, transparent); border-radius: 2px;
  color: var(--vscode-button-secondaryForeground); background: var(--vscode-button-secondaryBackground); cursor: pointer; }
button.first { color: var(--vscode-button-foreground); background: var(--vscode-button-background); }
button:focus-visible { outline: 1px solid var(--vscode-focusBorder); outline-offset: 2px; }
[role="row"] { display: grid; grid-template-columns: minmax(14em, 3fr) 9.5em 5em 6em minmax(6em, 2fr); gap: 0 1em;
  align-items: center; padding: 0.15em 0.3em; border-top: 1px solid var(--vscode-widget-border, transparent); }
[role="row"][hidden] { display: none; }
[role="row"]:focus { outline: 1px solid var(--vscode-focusBorder); outline-offset: -1px;
  background: var(--vscode-list-focusBackground, var(--vscode-list-hoverBackground)); }
#rows [role="row"]:hover { background: var(--vscode-list-hoverBackground); }
.heads { font-weight: 600; border-top: none; }
.heads span:nth-child(n + 2):nth-child(-n + 4), .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.name { display: flex; gap: 0.4em; align-items: baseline; min-width: 0; white-space: nowrap; overflow: hidden; }
.name a { color: inherit; cursor: pointer; overflow: hidden; text-overflow: ellipsis; }
.name a:hover { color: var(--vscode-textLink-foreground); text-decoration: underline; }
.agent .name a { font-weight: 600; }
.why { color: var(--vscode-editorError-foreground); }
.twist { flex: none; width: 1em; text-align: center; cursor: pointer; }
[aria-expanded="true"] .twist::before { content: "▾"; }
[aria-expanded="false"] .twist::before { content: "▸"; }
.sign { flex: none; width: 1em; text-align: center; }
.ok .sign { color: var(--vscode-testing-iconPassed); }
.failed .sign { color: var(--vscode-editorError-foreground); }
.running .sign { color: var(--vscode-progressBar-background); }
.course svg { display: block; width: 100%; height: 0.8em; background: var(--vscode-editorWidget-background); border-radius: 2px; }
.agent rect { fill: var(--vscode-charts-purple); }
.chat rect { fill: var(--vscode-charts-blue); }
.tool rect { fill: var(--vscode-charts-green); }
.failed rect { fill: var(--vscode-charts-red); }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
${[1, 2, 3, 4, 5, 6, 7, 8].map((level) => `.level-${level} { padding-left: ${(level - 1) * 1.2}em; }`).join("\n")}
@media (max-width: 40em) { [role="row"] { grid-template-columns: minmax(10em, 1fr) 7em 4em 5em; } .course, .heads span:last-child { display: none; } }`;

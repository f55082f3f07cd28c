// The page of the doctor: what was looked at, what is wrong, and a button for each thing that can be mended.

import type { DoctorFinding } from "../../contract.gen";
import { escapeHtml, htmlPage } from "./page";

/** What a button of the page does; `look` looks again. */
export type DoctorAct = NonNullable<DoctorFinding["action"]> | "look" | "copy" | "restart";
export type DoctorPressed = { act: DoctorAct } | { command: string };

/** A finding as it is shown: of what the editor finds by itself it may also restart the server. */
export type PageFinding = Omit<DoctorFinding, "action"> & { action?: DoctorAct };

export interface DoctorWords {
  title: string;
  /** How many things are to be mended, or that nothing is. */
  summary: string;
  areas: Record<DoctorFinding["area"], string>;
  states: Record<DoctorFinding["state"], string>;
  acts: Record<DoctorAct, string>;
  /** Puts a command into a terminal, where the person sees it before it runs. */
  terminal: string;
}

interface DoctorPage {
  words: DoctorWords;
  findings: readonly PageFinding[];
  language: string;
  nonce: string;
}

const AREAS: readonly DoctorFinding["area"][] = [
  "daiku",
  "settings",
  "models",
  "programs",
  "sandbox",
  "mcp",
  "tools",
  "memory",
  "trace",
];
const SIGNS: Record<DoctorFinding["state"], string> = { good: "✓", note: "!", bad: "✗" };

/** The whole page. It may run its own script and nothing else, and fetches nothing. */
export function doctorPage({ words, findings, language, nonce }: DoctorPage): string {
  const bad = findings.some(({ state }) => state === "bad");
  const sections = AREAS.map((area) => section(area, findings, words)).join("");
  const body = `<p class="summary ${bad ? "bad" : "good"}" role="status">${escapeHtml(words.summary)}</p>
<p class="buttons">${button("look", words, true)}${button("copy", words)}${button("log", words)}</p>
${sections}`;
  return htmlPage({ title: words.title, language, nonce, style: STYLE, script: SCRIPT, body });
}

function section(area: DoctorFinding["area"], findings: readonly PageFinding[], words: DoctorWords): string {
  const own = findings.filter((finding) => finding.area === area);
  if (own.length === 0) return "";
  return `<section><h2>${escapeHtml(words.areas[area])}</h2><ul>${own.map((one) => row(one, words)).join("")}</ul></section>`;
}

function row({ state, what, mend, action, command }: PageFinding, words: DoctorWords): string {
  const buttons = [
    action ? button(action, words) : "",
    command
      ? `<button data-command="${escapeHtml(command)}" title="${escapeHtml(command)}">${escapeHtml(words.terminal)}</button>`
      : "",
  ].join("");
  return `<li class="${state}">
<span class="sign" aria-hidden="true">${SIGNS[state]}</span>
<div><p><span class="hidden">${escapeHtml(words.states[state])}: </span>${escapeHtml(what)}</p>
${mend ? `<p class="mend">${escapeHtml(mend)}</p>` : ""}
${command ? `<p><code>${escapeHtml(command)}</code></p>` : ""}
${buttons ? `<p class="buttons">${buttons}</p>` : ""}</div>
</li>`;
}

const button = (act: DoctorAct, words: DoctorWords, first = false): string =>
  `<button data-act="${act}"${first ? ' class="first"' : ""}>${escapeHtml(words.acts[act])}</button>`;

/** The same as plain text, for a report. */
export const doctorText = ({ words, findings }: Pick<DoctorPage, "words" | "findings">): string =>
  [
    words.title,
    ...findings.map(({ state, what, mend }) => `${SIGNS[state]} ${what}${mend ? `\n    ${mend}` : ""}`),
    words.summary,
    "",
  ].join("\n");

const SCRIPT = `
const host = acquireVsCodeApi();
document.addEventListener("click", ({ target }) => {
  const { act, command } = target.closest("button")?.dataset ?? {};
  if (command) host.postMessage({ command });
  else if (act) host.postMessage({ act });
});`;

const STYLE = `
body { font-family: var(--vscode-font-family); font-size: var(--vscode-font-size); color: var(--vscode-foreground); }
main { max-width: 48em; padding: 0.5em 1em 2em; }
h1 { font-size: 1.5em; font-weight: 600; }
h2 { font-size: 1.1em; font-weight: 600; margin: 1.6em 0 0.4em; }
ul { list-style: none; margin: 0; padding: 0; }
li { display: flex; gap: 0.8em; padding: 0.35em 0; border-top: 1px solid var(--vscode-widget-border, transparent); }
li p { margin: 0.15em 0; overflow-wrap: anywhere; }
.sign { width: 1.2em; text-align: center; font-weight: 600; }
.good .sign { color: var(--vscode-testing-iconPassed); }
.note .sign { color: var(--vscode-editorWarning-foreground); }
.bad .sign { color: var(--vscode-editorError-foreground); }
.summary { font-weight: 600; }
.mend { color: var(--vscode-descriptionForeground); }
.buttons { display: flex; flex-wrap: wrap; gap: 0.5em; }
button { font: inherit; padding: 0.3em 0.9em; border: 1px solid var(--vscode-button-border, transparent); border-radius: 2px;
  color: var(--vscode-button-secondaryForeground); background: var(--vscode-button-secondaryBackground); cursor: pointer; }
button.first { color: var(--vscode-button-foreground); background: var(--vscode-button-background); }
button:focus-visible { outline: 1px solid var(--vscode-focusBorder); outline-offset: 2px; }
code { font-family: var(--vscode-editor-font-family); }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }`;

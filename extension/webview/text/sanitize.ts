// Markdown from strangers to HTML that can show nothing but text: no remote content, no scripts, no commands.

import createDOMPurify from "dompurify";
import hljs from "highlight.js/lib/common";
import MarkdownIt, { type Token } from "markdown-it";
import { t } from "../base/words";

const WEB = /^(?:https?:\/\/|mailto:)/i;
const FILE = /^(?:\.{0,2}\/)?(?:[\w@.+-]+\/)*[\w@.+-]+(?:[:#]L?\d+(?:[-–]L?\d+)?)?$/;
const FILE_IN_CODE =
  /^(?:[\w@.+-]+\/)*[\w@.+-]+\.(?:py|pyi|tsx?|jsx?|mjs|cjs|json|toml|ya?ml|md|rs|go|java|kt|c|h|cc|cpp|hpp|cs|rb|php|sh|sql|css|scss|html|txt|cfg|ini|lock|j2|svg|xml|vue|swift)(?::\d+)?$/;
const MOST_HIGHLIGHTED = 60_000;
const MOST_HIGHLIGHTED_LIVE = 6_000;

const parser = new MarkdownIt({ html: false, linkify: true, breaks: false });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
parser.validateLink = (href) => WEB.test(href) || FILE.test(decode(href));

const quoted = parser.utils.escapeHtml;

const attribute = (token: Token | undefined, name: string): string => String(token?.attrGet(name) ?? "");

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// An image is only named: to fetch it would tell its server that, and what, a person reads.
parser.renderer.rules.image = (tokens, i) => {
  const token = tokens[i];
  const name = token?.content || decode(attribute(token, "src"));
  return `<span class="image"><span class="codicon codicon-file-media"></span>${quoted(name)}</span>`;
};

parser.renderer.rules.link_open = (tokens, i) => {
  const href = attribute(tokens[i], "href");
  if (WEB.test(href)) return `<a href="${quoted(href)}" title="${quoted(href)}">`;
  return fileLink(decode(href));
};

function fileLink(target: string): string {
  const match = /^(.*?)(?:[:#]L?(\d+)(?:[-–]L?\d+)?)?$/.exec(target);
  const line = match?.[2] ? ` data-line="${match[2]}"` : "";
  return `<a href="#" data-path="${quoted(match?.[1] ?? target)}"${line}>`;
}

parser.renderer.rules.code_inline = (tokens, i) => {
  const text = tokens[i]?.content ?? "";
  const code = `<code>${quoted(text)}</code>`;
  return FILE_IN_CODE.test(text) ? `${fileLink(text)}${code}</a>` : code;
};

parser.renderer.rules.fence = (tokens, i, _options, env) => {
  const token = tokens[i];
  const language = (token?.info ?? "").trim().split(/\s+/)[0] ?? "";
  const code = token?.content ?? "";
  return codeBlock(code, language, env?.live === true);
};
parser.renderer.rules.code_block = (tokens, i) => codeBlock(tokens[i]?.content ?? "", "", false);

function codeBlock(code: string, language: string, live: boolean): string {
  const button = (act: string, icon: string, label: string) =>
    `<button type="button" class="icon" data-act="${act}" title="${quoted(label)}" aria-label="${quoted(label)}"><span class="codicon codicon-${icon}"></span></button>`;
  const actions = button("insert", "insert", t("Insert at Cursor")) + button("copy", "copy", t("Copy"));
  const name = quoted(language || t("text"));
  const head = `<div class="code-head"><span>${name}</span><span class="code-actions">${actions}</span></div>`;
  return `<div class="code">${head}<pre tabindex="0"><code>${highlight(code, language, live)}</code></pre></div>`;
}

/** Code as HTML with token classes; plain where the language is unknown or the text too long. */
export function highlight(code: string, language: string, live = false): string {
  const known = language && hljs.getLanguage(language) ? language : "";
  if (!known || code.length > (live ? MOST_HIGHLIGHTED_LIVE : MOST_HIGHLIGHTED)) return quoted(code);
  return hljs.highlight(code, { language: known, ignoreIllegals: true }).value;
}

for (const rule of ["th_open", "td_open"]) {
  parser.renderer.rules[rule] = (tokens, i, options, _env, self) => {
    const token = tokens[i];
    const align = /text-align:(\w+)/.exec(attribute(token, "style"))?.[1];
    if (token) token.attrs = align ? [["class", `align-${align}`]] : [];
    return self.renderToken(tokens, i, options);
  };
}
parser.renderer.rules.table_open = () => '<div class="table" tabindex="0"><table>';
parser.renderer.rules.table_close = () => "</table></div>";

// `- [x] done`: a box, as a person would tick it on paper; a screen reader hears which it is.
const TASK = /^\[([ xX])\](?=\s)/;
parser.core.ruler.after("inline", "tasks", ({ tokens }) => {
  tokens.forEach((token, n) => {
    const [item, paragraph] = [tokens[n - 2], tokens[n - 1]];
    const first = token.children?.[0];
    if (token.type !== "inline" || paragraph?.type !== "paragraph_open" || item?.type !== "list_item_open") return;
    const mark = first?.type === "text" ? TASK.exec(first.content) : null;
    if (!first || !mark) return;
    first.content = first.content.slice(mark[0].length + 1);
    item.attrJoin("class", mark[1] === " " ? "task" : "task done");
  });
});
parser.renderer.rules.list_item_open = (tokens, i, options, _env, self) => {
  const kind = attribute(tokens[i], "class");
  if (!kind) return self.renderToken(tokens, i, options);
  const done = kind !== "task";
  const label = quoted(done ? t("done") : t("not done"));
  return `<li class="${kind}"><span class="codicon codicon-${done ? "pass-filled" : "circle-large-outline"}" role="img" aria-label="${label}" title="${label}"></span>`;
};

const TAGS = [
  ...[
    "a",
    "p",
    "br",
    "hr",
    "em",
    "strong",
    "s",
    "del",
    "code",
    "pre",
    "blockquote",
    "ul",
    "ol",
    "li",
    "div",
    "span",
    "button",
  ],
  ...["h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"],
];
/** Attributes that hold no address. */
const PLAIN = [
  "class",
  "title",
  "type",
  "role",
  "start",
  "tabindex",
  "aria-label",
  "data-act",
  "data-path",
  "data-line",
];

let purify: ReturnType<typeof createDOMPurify> | undefined;

/** HTML of a piece of markdown. `live`: it is still growing, so costly colours are left for later. */
export function render(markdown: string, live = false): string {
  purify ??= createDOMPurify(window);
  return purify.sanitize(parser.render(markdown, { live }), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: [...PLAIN, "href"],
    ADD_URI_SAFE_ATTR: PLAIN,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#)/i,
  });
}

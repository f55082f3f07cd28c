// Markdown that is still arriving, cut into blocks so that only the last one has to be rendered again.

import MarkdownIt from "markdown-it";

export interface Blocks {
  /** All of the text so far. */
  readonly text: string;
  /** Finished blocks, each a piece of markdown of its own. */
  readonly done: readonly string[];
  /** Where the unfinished block begins in `text`. */
  readonly from: number;
}

export const NO_BLOCKS: Blocks = { text: "", done: [], from: 0 };

const parser = new MarkdownIt({ html: false });

/** The blocks of a text that begins with the former one; another text starts over. */
export function advance(blocks: Blocks, text: string): Blocks {
  if (text === blocks.text) return blocks;
  const base = text.startsWith(blocks.text) ? blocks : NO_BLOCKS;
  const starts = blockStarts(text.slice(base.from));
  // The last block may still grow, and the one before it too while only blank lines follow.
  const last = starts.at(-1) ?? 0;
  if (starts.length < 2) return { ...base, text };
  const tail = text.slice(base.from);
  const done = starts.slice(0, -1).map((start, i) => tail.slice(start, starts[i + 1]));
  return { text, done: [...base.done, ...done], from: base.from + last };
}

/** Offsets at which the top-level blocks of a markdown text begin. */
function blockStarts(text: string): number[] {
  const lineStarts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lineStarts.push(at + 1);
  const starts: number[] = [];
  let depth = 0;
  for (const token of parser.parse(text, {})) {
    if (depth === 0 && token.nesting >= 0 && token.map) starts.push(lineStarts[token.map[0]] ?? text.length);
    depth += token.nesting;
  }
  if (starts.length > 0) starts[0] = 0;
  return starts;
}

/** Link definitions count in the whole text: such a text is rendered in one piece once it is complete. */
export const hasDefinitions = (text: string): boolean => /^ {0,3}\[[^\]\n]+\]:\s*\S/m.test(text);

// Adds up usage, and truncates long output in its middle.

import type { Usage } from "../../contract.gen";

/** Output of a running tool beyond this is cut in the middle: nobody reads it live. */
const MOST_OUTPUT = 40_000;

/** The start and the end of a long text. */
export function cutMiddle(text: string, most = MOST_OUTPUT): string {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  return `${text.slice(0, half)}\n…\n${text.slice(-half)}`;
}

/** The sum of two usages; the cost stays unknown only when both are. */
export function addUsage(a: Usage, b: Usage): Usage {
  const costs = [a.cost, b.cost].filter((cost) => cost !== undefined);
  return {
    model: b.model || a.model,
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    ...(costs.length ? { cost: costs.reduce((sum, cost) => sum + cost, 0) } : {}),
  };
}

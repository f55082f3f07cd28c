// Translates the panel's texts into the person's language; English is the key.

import { fill } from "../../src/pure/text/words";

let words: Record<string, string> = {};

/** Sets the translations and the page's language. */
export function setWords(bundle: Record<string, string> | undefined, locale: string): void {
  words = bundle ?? {};
  if (typeof document !== "undefined") document.documentElement.lang = locale;
}

/** The text in the person's language, with `{0}`, `{1}`, … filled in. */
export function t(text: string, ...values: (string | number)[]): string {
  return fill(words[text] ?? text, values);
}

/** “a, b or c” in the person's language. */
export const oneOf = (names: string[]): string =>
  new Intl.ListFormat(document.documentElement.lang || "en", { type: "disjunction" }).format(names);

/** Adds the words of `text` to `counts` (a Map from word to number); capitals do not count. */
export function countWords(text, counts) {
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}']+/gu)) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

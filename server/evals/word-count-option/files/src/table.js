const byAlphabet = (a, b) => (a[0] < b[0] ? -1 : 1);
const byCount = (a, b) => b[1] - a[1] || byAlphabet(a, b);

/** The counts as lines, most frequent first. */
export function table(counts) {
  return [...counts].sort(byCount).map(([word, count]) => `${count}\t${word}\n`).join("");
}

/** What the web server calls: one click, and the clicks of many names. */
export const click = (counters, name) => counters.add(`clicks:${name}`);

export async function report(counters, names) {
  const found = await Promise.all(names.map((name) => counters.get(`clicks:${name}`)));
  return Object.fromEntries(names.map((name, at) => [name, found[at]]));
}

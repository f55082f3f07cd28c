// Fill values into text templates.

/** Puts values into `{0}`, `{1}`, … of a text. */
export function fill(text: string, values: readonly (string | number)[]): string {
  return text.replace(/\{(\d+)\}/g, (whole, index: string) => String(values[Number(index)] ?? whole));
}

/** Puts fields into the `{name}` of a text. */
export function fillFields(text: string, fields: Readonly<Record<string, unknown>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => String(fields[name] ?? ""));
}

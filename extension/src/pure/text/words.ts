// Marks texts for translation, and fills values into them.

/** Marks a text for translation without translating it. */
export const say = (text: string): string => text;

/** Puts values into `{0}`, `{1}`, … of a text. */
export function fill(text: string, values: readonly (string | number)[]): string {
  return text.replace(/\{(\d+)\}/g, (whole, index: string) => String(values[Number(index)] ?? whole));
}

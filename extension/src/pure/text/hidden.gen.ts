// GENERATED from server/daiku/texts/rules/visible.py by .dev/gen.py; do not edit, run `npm run gen`.

/** Characters that hide or reorder text, for a regular expression's character class. */
export const UNSEEN = "\\u{ad}\\u{34f}\\u{61c}\\u{115f}\\u{1160}\\u{17b4}\\u{17b5}\\u{180b}-\\u{180f}\\u{200b}-\\u{200f}\\u{2028}-\\u{202e}\\u{2060}-\\u{206f}\\u{2800}\\u{3164}\\u{fe00}-\\u{fe0f}\\u{feff}\\u{ffa0}\\u{fff9}-\\u{fffb}\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}";

/** Letters and marks that render as blank, for a character class as well. */
export const BLANK = "\\u{34f}\\u{115f}\\u{1160}\\u{17b4}\\u{17b5}\\u{180b}\\u{180c}\\u{180d}\\u{180f}\\u{2800}\\u{3164}\\u{ffa0}";

/** Regular expression for flags that are written with tag characters. */
export const FLAGS = "\\u{1f3f4}(?:\\u{e0067}\\u{e0062}\\u{e0065}\\u{e006e}\\u{e0067}|\\u{e0067}\\u{e0062}\\u{e0073}\\u{e0063}\\u{e0074}|\\u{e0067}\\u{e0062}\\u{e0077}\\u{e006c}\\u{e0073})\\u{e007f}";

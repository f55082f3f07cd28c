// Terminal text made harmless and readable: escape sequences out, overwritten lines as a terminal would leave them.

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: control characters are what this file is about
const SEQUENCES =
  /\u001b\][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|[\u001b\u009b][[\]()#;?]*(?:\d{1,4}(?:[;:]\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]|\u001b[PX^_][^\u001b\u009c]*(?:\u001b\\|\u009c)?|\u001b./g;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: until here

/** Characters that reorder or hide text, and so could show another command than the one that runs. */
const HIDDEN =
  /\u034f|[\u17b4\u17b5]|[\u180b-\u180f]|[\u00ad\u061c\u115f\u1160\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** Output as a person reads it: no escape sequences, no control characters, `\r` overwrites its line. */
export function plainText(text: string): string {
  return text
    .replace(SEQUENCES, "")
    .replace(/\r+\n/g, "\n")
    .split("\n")
    .map((line) => line.slice(line.lastIndexOf("\r", line.length - 2) + 1).replace(/\r$/, ""))
    .join("\n")
    .replace(CONTROLS, "");
}

/** Exactly what is there, with everything invisible made visible: for what a person is asked to allow. */
export function showControls(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(HIDDEN, (c) => `‹U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`)
    .replaceAll("\r", "␍")
    .replace(CONTROLS, (c) => {
      const code = c.charCodeAt(0);
      return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : `‹${code.toString(16)}›`;
    });
}

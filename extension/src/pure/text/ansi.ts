// Terminal text made harmless and readable: escape sequences out, overwritten lines as a terminal would leave them.

import { BLANK, FLAGS, UNSEEN } from "./hidden.gen";

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: control characters are what this file is about
const SEQUENCES =
  /\u001b\][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|[\u001b\u009b][[\]()#;?]*(?:\d{1,4}(?:[;:]\d{0,4})*)?[\dA-PR-TZcf-nq-uy=><~]|\u001b[PX^_][^\u001b\u009c]*(?:\u001b\\|\u009c)?|\u001b./g;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: until here

/** A letter, mark, or symbol that a joiner may connect. */
const JOINED = String.raw`(?![\0-\x7f${BLANK}])[\p{L}\p{M}\p{S}]`;
/** Characters in `UNSEEN` that a script or an emoji needs in their place. The server has the same rules. */
const NEEDED = [
  FLAGS,
  String.raw`[\u200c\u200d](?<=${JOINED}.)(?=${JOINED})`,
  String.raw`[\ufe0e\ufe0f](?<=(?:[0-9#*\u2139]|(?![\0-\x7f])[\p{S}\p{P}]).)`,
  String.raw`[\ufe00-\ufe0d\u{e0100}-\u{e01ef}](?<=\p{Ideographic}.)`,
  String.raw`\ufe00(?<=(?![\0-\x7f])\p{Sm}.)`,
].join("|");
/** Characters that reorder or hide text, and so could show another command than the one that runs. */
const HIDDEN = new RegExp(`(${NEEDED})|[${UNSEEN}]`, "gu");

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

/** Return `plainText` with visible escapes for characters that hide or reorder text. */
export function showOutput(text: string): string {
  return showHidden(plainText(text));
}

/** Exactly what is there, with everything invisible made visible: for what a person is asked to allow. */
export function showControls(text: string): string {
  return showHidden(text.replace(/\r\n/g, "\n"))
    .replaceAll("\r", "␍")
    .replace(CONTROLS, (c) => {
      const code = c.charCodeAt(0);
      return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : `‹${code.toString(16)}›`;
    });
}

function showHidden(text: string): string {
  return text.replace(
    HIDDEN,
    (c, needed?: string) => needed ?? `‹U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`,
  );
}

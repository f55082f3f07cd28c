// Unified diffs: read for display, and undone to get a file's former text.

export interface DiffLine {
  kind: "add" | "del" | "same";
  text: string;
  /** Line numbers, from 1; absent on the side where the line is not. */
  old?: number;
  new?: number;
}

export interface Hunk {
  oldStart: number;
  newStart: number;
  heading: string;
  lines: DiffLine[];
}

export interface FileDiff {
  /** Absent: the file is new. */
  oldPath: string | undefined;
  /** Absent: the file is deleted. */
  newPath: string | undefined;
  hunks: Hunk[];
  /** The last line has no line end, before and after. */
  oldNoEnd: boolean;
  newNoEnd: boolean;
}

const HEADER = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/;

/** All files of a unified diff; text that is none has no files. */
export function parseDiff(diff: string): FileDiff[] {
  const files: FileDiff[] = [];
  const lines = diff.split("\n");
  if (lines.at(-1) === "") lines.pop();
  let file: FileDiff | undefined;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? "";
    const next = lines[i + 1] ?? "";
    if (line.startsWith("--- ") && next.startsWith("+++ ")) {
      file = { oldPath: pathOf(line), newPath: pathOf(next), hunks: [], oldNoEnd: false, newNoEnd: false };
      files.push(file);
      i++;
      continue;
    }
    const header = HEADER.exec(line);
    if (header && file) i = readHunk(file, header, lines, i + 1) - 1;
  }
  return files;
}

function pathOf(line: string): string | undefined {
  const path = line.slice(4).split("\t")[0]?.trim() ?? "";
  return path === "/dev/null" ? undefined : path.replace(/^[ab]\//, "");
}

/** Reads the lines that the header counts; answers with the index of the first line after the hunk. */
function readHunk(file: FileDiff, header: RegExpExecArray, lines: string[], from: number): number {
  let [old, now] = [Number(header[1]), Number(header[3])];
  let [oldLeft, newLeft] = [Number(header[2] ?? 1), Number(header[4] ?? 1)];
  const hunk: Hunk = { oldStart: old, newStart: now, heading: header[5] ?? "", lines: [] };
  file.hunks.push(hunk);
  let i = from;
  for (; i < lines.length; i++) {
    const line = lines[i] ?? "";
    if (line.startsWith("\\")) {
      const last = hunk.lines.at(-1)?.kind;
      if (last !== "add") file.oldNoEnd = true;
      if (last !== "del") file.newNoEnd = true;
      continue;
    }
    if (oldLeft <= 0 && newLeft <= 0) break;
    const text = line.slice(1);
    if (line.startsWith("+")) {
      hunk.lines.push({ kind: "add", text, new: now++ });
      newLeft--;
    } else if (line.startsWith("-")) {
      hunk.lines.push({ kind: "del", text, old: old++ });
      oldLeft--;
    } else {
      hunk.lines.push({ kind: "same", text, old: old++, new: now++ });
      oldLeft--;
      newLeft--;
    }
  }
  return i;
}

/**
 * The text before the diff, from the text after it. `undefined` where the diff does not fit: the file has
 * changed since. A line end of CRLF is kept.
 */
export function formerText(now: string, file: FileDiff): string | undefined {
  if (file.oldPath === undefined) return "";
  const end = now.includes("\r\n") ? "\r\n" : "\n";
  const lines = now === "" ? [] : now.split(/\r?\n/);
  const ended = lines.at(-1) === "";
  if (ended) lines.pop();
  const before: string[] = [];
  let at = 0;
  for (const hunk of file.hunks) {
    const size = hunk.lines.filter((line) => line.kind !== "del").length;
    const start = Math.max(0, size === 0 ? hunk.newStart : hunk.newStart - 1);
    if (start < at) return undefined;
    before.push(...lines.slice(at, start));
    at = start;
    for (const line of hunk.lines) {
      const text = line.text.replace(/\r$/, "");
      if (line.kind !== "add") before.push(text);
      if (line.kind === "del") continue;
      if (lines[at] !== text) return undefined;
      at++;
    }
  }
  before.push(...lines.slice(at));
  if (before.length === 0) return "";
  const wasEnded = file.oldNoEnd ? false : file.newNoEnd ? true : ended || file.newPath === undefined;
  return before.join(end) + (wasEnded ? end : "");
}

/** How many lines a file's diff adds and removes. */
export function counts(file: FileDiff): { added: number; removed: number } {
  const all = file.hunks.flatMap((hunk) => hunk.lines);
  const of = (kind: DiffLine["kind"]) => all.filter((line) => line.kind === kind).length;
  return { added: of("add"), removed: of("del") };
}

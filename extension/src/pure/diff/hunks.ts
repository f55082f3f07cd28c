// Line ranges of undecided changes in the old and the new file, and navigation between them.

import type { ChangedFile, ChangeHunk } from "../../contract.gen";

/** Lines from 0; `end` is the line after the last one. A side without lines is empty where they would be. */
interface Lines {
  start: number;
  end: number;
}

/** The lines of a hunk in the file as it is now. */
export const linesNow = (hunk: ChangeHunk): Lines => lines(hunk.newStart, hunk.newLines);
const linesBefore = (hunk: ChangeHunk): Lines => lines(hunk.oldStart, hunk.oldLines);

/** A side without lines names the line before it, from 1: from 0 that is the line after. */
const lines = (start: number, count: number): Lines =>
  count === 0 ? { start, end: start } : { start: start - 1, end: start - 1 + count };

/** The hunks of a file that wait for a decision. */
export const openHunks = (file: ChangedFile): readonly ChangeHunk[] =>
  file.hunks.filter(({ state }) => state === "open");

/** Nothing of it can be pointed at: it is decided on as a whole. */
const whole = (file: ChangedFile): boolean => file.hunks.length === 0;

/** Whether anything of a file waits for a decision. */
export const isOpen = (file: ChangedFile): boolean => whole(file) || openHunks(file).length > 0;

/** How much waits for a decision; a file without hunks counts as one change. */
export function countOpen(files: readonly ChangedFile[]): { changes: number; files: number } {
  const open = files.filter(isOpen);
  const changes = open.reduce((sum, file) => sum + Math.max(1, openHunks(file).length), 0);
  return { changes, files: new Set(open.map(({ path }) => path)).size };
}

/** The open hunk that a line lies in or beside; `last`: the file's last line, which stands for what is after it. */
export function hunkAt(file: ChangedFile, line: number, side: "now" | "before", last: number): ChangeHunk | undefined {
  return openHunks(file).find((hunk) => {
    const { start, end } = side === "now" ? linesNow(hunk) : linesBefore(hunk);
    const from = Math.min(start, last);
    return line >= from && line < Math.max(end, from + 1);
  });
}

export interface Stop {
  path: string;
  file: ChangedFile;
  /** Absent: the file as a whole. */
  hunk: ChangeHunk | undefined;
}

/** Every place where something waits, file by file, from top to bottom. */
export const stops = (files: readonly ChangedFile[]): readonly Stop[] =>
  files
    .filter(isOpen)
    .flatMap((file): Stop[] =>
      whole(file)
        ? [{ path: file.path, file, hunk: undefined }]
        : openHunks(file).map((hunk) => ({ path: file.path, file, hunk })),
    )
    // Two chats may have changed one file: its places are gone through as they stand in it.
    .sort((a, b) => (a.path === b.path ? place(a) - place(b) : 0));

const place = ({ hunk }: Stop): number => (hunk ? linesNow(hunk).start : -1);

/** The next place after a line of a file (`by` 1) or the one before it (`by` -1), going round at the ends. */
export function stopFrom(files: readonly ChangedFile[], path: string | undefined, line: number, by: 1 | -1) {
  const all = stops(files);
  const own = all.flatMap((stop, n) => (stop.path === path ? [n] : []));
  const start = (n: number) => {
    const hunk = all[n]?.hunk;
    return hunk ? linesNow(hunk).start : 0;
  };
  const end = (n: number) => {
    const hunk = all[n]?.hunk;
    return hunk ? Math.max(linesNow(hunk).end, linesNow(hunk).start + 1) : 1;
  };
  const here = by > 0 ? own.find((n) => start(n) > line) : own.findLast((n) => end(n) <= line);
  if (here !== undefined) return all[here];
  if (all.length === 0) return undefined;
  const edge = by > 0 ? (own.at(-1) ?? -1) + 1 : (own[0] ?? 0) - 1;
  return all[(edge + all.length) % all.length];
}

/** The first line that says something, for a list. */
export function firstWords({ text }: ChangeHunk): string {
  const changed = text.split("\n").filter((line) => /^[+-]/.test(line));
  const telling =
    changed.find((line) => line.startsWith("+") && line.slice(1).trim()) ??
    changed.find((line) => line.slice(1).trim());
  return (telling ?? changed[0] ?? "").slice(1).trim();
}

/** How many lines a hunk adds and removes. */
export function countsOf({ text }: ChangeHunk): { added: number; removed: number } {
  const all = text.split("\n");
  return { added: all.filter((line) => line[0] === "+").length, removed: all.filter((line) => line[0] === "-").length };
}

// The difference that a change makes to lessons, as the server shows it: its lines, and both sides of it.

import type { DiffLine } from "./diff";

type LessonLine = Pick<DiffLine, "kind" | "text">;

const KINDS: Record<string, DiffLine["kind"]> = { "+": "add", "-": "del", " ": "same" };

/** The lines of a difference, without the names of the lessons. */
export const changedLines = (diff: string): LessonLine[] => diff.split("\n").flatMap(lineOf);

function lineOf(line: string): LessonLine[] {
  const kind = KINDS[line.slice(0, 1)];
  return kind ? [{ kind, text: line.slice(1) }] : [];
}

/** The texts before and after. Where several lessons are changed, each has its name above it. */
export function sidesOf(diff: string): [before: string, after: string] {
  const lines = diff.split("\n");
  const named = lines.filter((line) => line.startsWith("@@")).length > 1;
  const side = (left: DiffLine["kind"]) =>
    lines
      .flatMap((line) => {
        if (line.startsWith("@@")) return named ? [line.replaceAll("@@", "").trim()] : [];
        return lineOf(line).flatMap(({ kind, text }) => (kind === left ? [] : [text]));
      })
      .join("\n");
  return [side("add"), side("del")];
}

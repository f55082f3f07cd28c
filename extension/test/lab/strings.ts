// All texts that the extension and its panel mark for translation, read from their sources.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { AGENT_LABELS, EVENT_LINES, type Line, TOOL_FACES } from "../../src/pure/view/tables.gen";

export const EXTENSION = path.resolve(import.meta.dirname, "..", "..");
const CALL = /\bt\(\s*("(?:[^"\\\n]|\\.)*")/g;

function sources(folder: string): string[] {
  return readdirSync(path.join(EXTENSION, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !/\.gen\.ts$/.test(name))
    .map((name) => readFileSync(path.join(EXTENSION, folder, name), "utf8"));
}

/** Those of the tables that come from the server. */
export function generated(): string[] {
  const faces = Object.values(TOOL_FACES).map((face) => face.title);
  const lines = Object.values<Line | null>(EVENT_LINES).flatMap((line) =>
    line ? [line.text, ...(line.cases ?? []).map(({ text }) => text)] : [],
  );
  return [...faces, ...Object.values(AGENT_LABELS), ...lines];
}

/** The texts, sorted. */
export function marked(): string[] {
  const texts = [...sources("src"), ...sources("webview")].flatMap((source) =>
    [...source.matchAll(CALL)].map((match) => JSON.parse(match[1] ?? '""') as string),
  );
  return [...new Set([...texts, ...generated()])].sort();
}

export const read = (name: string): Record<string, string> =>
  JSON.parse(readFileSync(path.join(EXTENSION, name), "utf8")) as Record<string, string>;

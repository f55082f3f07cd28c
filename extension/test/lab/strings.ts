// All texts that the extension and its panel mark for translation, read from their sources.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

export const EXTENSION = path.resolve(import.meta.dirname, "..", "..");
const CALL = /\b(?:t|say)\(\s*("(?:[^"\\\n]|\\.)*")/g;

function sources(folder: string): string[] {
  return readdirSync(path.join(EXTENSION, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !/\.gen\.ts$/.test(name))
    .map((name) => readFileSync(path.join(EXTENSION, folder, name), "utf8"));
}

/** The texts, sorted. */
export function marked(): string[] {
  const texts = [...sources("src"), ...sources("webview")].flatMap((source) =>
    [...source.matchAll(CALL)].map((match) => JSON.parse(match[1] ?? '""') as string),
  );
  return [...new Set(texts)].sort();
}

export const read = (name: string): Record<string, string> =>
  JSON.parse(readFileSync(path.join(EXTENSION, name), "utf8")) as Record<string, string>;

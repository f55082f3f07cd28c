// The modules of the extension and its panel as their sources say: imports, exports, functions, lines.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { parseSync } from "vite"; // comes with vitest
import { EXTENSION } from "./strings";

interface Module {
  /** Its path inside `extension/`, with `/`. */
  name: string;
  text: string;
  lines: number;
  /** The modules of ours that it imports, by name. */
  imports: readonly string[];
  /** The packages that it imports. */
  packages: readonly string[];
  exports: readonly string[];
  /** Named functions, methods and values that are functions, with their length in lines. */
  functions: readonly { name: string; lines: number }[];
}

/** All files with one of these endings under these folders of `extension/`, generated ones left out. */
export const filesIn = (folders: readonly string[], endings: RegExp): string[] =>
  folders.flatMap((folder) =>
    readdirSync(path.join(EXTENSION, folder), { recursive: true, encoding: "utf8" })
      .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
      .filter((name) => endings.test(name) && !/\.(gen|d)\.ts$/.test(name)),
  );

export const textOf = (name: string): string => readFileSync(path.join(EXTENSION, name), "utf8");

/** The modules in the order of their names. */
export const modulesIn = (...folders: string[]): Module[] =>
  filesIn(folders, /\.tsx?$/)
    .sort()
    .map(moduleOf);

function moduleOf(name: string): Module {
  const text = textOf(name);
  const { program, module } = parseSync(name, text, { lang: name.endsWith("x") ? "tsx" : "ts" });
  const dynamic = [...text.matchAll(/\bimport\(\s*"([^"]+)"\s*\)/g)].map((match) => match[1] ?? "");
  const asked = [...module.staticImports.map(({ moduleRequest }) => moduleRequest.value), ...dynamic];
  const exported = module.staticExports.flatMap(({ entries }) => entries.map((entry) => entry.exportName.name ?? "*"));
  return {
    ...{ name, text, lines: text.split("\n").length - 1, exports: exported },
    imports: asked.filter((one) => one.startsWith(".")).map((one) => resolve(name, one)),
    packages: asked.filter((one) => !one.startsWith(".")),
    functions: [...functionsIn(program, "")].map(({ name: own, start, end }) => ({
      name: own,
      lines: text.slice(start, end).split("\n").length,
    })),
  };
}

function resolve(from: string, request: string): string {
  const base = path.posix.join(path.posix.dirname(from), request).replace(/^\.\.\/extension\//, "");
  const names = ["", ".ts", ".tsx"].map((ending) => base + ending);
  return names.find((name) => /\.\w+$/.test(name) && existsSync(path.join(EXTENSION, name))) ?? base;
}

interface Node {
  type: string;
  start: number;
  end: number;
}

/** Every function in a tree; one without a name goes by the name of what it is given to. */
function* functionsIn(node: unknown, name: string): Generator<{ name: string; start: number; end: number }> {
  if (Array.isArray(node)) for (const one of node) yield* functionsIn(one, name);
  else if (isNode(node)) {
    const own = nameOf(node) ?? name;
    if (/^(Function|Arrow)/.test(node.type)) yield { name: own, start: node.start, end: node.end };
    for (const [key, value] of Object.entries(node)) if (key !== "type") yield* functionsIn(value, own);
  }
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null;

function nameOf(node: Node): string | undefined {
  const { id, key } = node as { id?: { name?: string }; key?: { name?: string } };
  return id?.name ?? key?.name;
}

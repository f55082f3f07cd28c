// Checks the structure in ARCHITECTURE.md against the sources of the extension and its panel.

import { describe, expect, it } from "vitest";
import * as vscode from "./editor/vscode";
import { filesIn, modulesIn, textOf } from "./lab/modules";

const MOST_FILES = 13;
const MOST_LINES = 350;
const MOST_FUNCTION_LINES = 50;
const MOST_WORDS = 160;

/** Folders of the map in ARCHITECTURE.md, in its order: a folder may import from itself and from folders before it. */
const MAP = [...textOf("ARCHITECTURE.md").matchAll(/^- `([^`]+)\/`: .+\.$/gm)].map((match) => match[1] ?? "");
const PURE = ["src/contract.gen.ts", ...MAP.filter((room) => room.startsWith("src/pure/"))];
const SOURCE = [
  ...[...PURE, "src/l10n.ts"],
  ...MAP.filter((room) => room.startsWith("src/") && !PURE.includes(room)),
  ...["src/app.ts", "src/extension.ts"],
];
const PANEL = [...PURE, ...MAP.filter((room) => room.startsWith("webview"))];

const product = modulesIn("src", "webview");
const tests = modulesIn("test");

/** The most special of the rooms that a module lies in. */
const roomOf = (name: string, rooms: readonly string[]): string | undefined =>
  rooms.filter((room) => name === room || name.startsWith(`${room}/`)).sort((a, b) => b.length - a.length)[0];

const folderOf = (name: string): string => name.slice(0, name.lastIndexOf("/"));

describe("imports", () => {
  it("go to the own room or to one below it", () => {
    const wrong = product.flatMap(({ name, imports }) => {
      const rooms = name.startsWith("src/") ? SOURCE : PANEL;
      const own = rooms.indexOf(roomOf(name, rooms) ?? "");
      const allowed = (to: string) => {
        const at = rooms.indexOf(roomOf(to, rooms) ?? "");
        return to.endsWith(".css") || (own >= 0 && at >= 0 && at <= own);
      };
      return imports.filter((to) => !allowed(to)).map((to) => `${name} imports ${to}`);
    });
    expect(wrong).toEqual([]);
  });

  it("of the composition root are made by the extension's entry alone", () => {
    const importing = product.filter(({ imports }) => imports.includes("src/app.ts"));
    expect(importing.map(({ name }) => name)).toEqual(["src/extension.ts"]);
  });

  it("form no circle, types included", () => {
    const imports = new Map(product.map((module) => [module.name, module.imports]));
    const done = new Set<string>();
    const circles: string[] = [];
    const visit = (name: string, path: readonly string[]): void => {
      const from = path.indexOf(name);
      if (from >= 0) circles.push([...path.slice(from), name].join(" → "));
      if (from >= 0 || done.has(name)) return;
      for (const to of imports.get(name) ?? []) visit(to, [...path, name]);
      done.add(name);
    };
    for (const name of imports.keys()) visit(name, []);
    expect(circles).toEqual([]);
  });

  it("of what is pure know neither the editor nor the machine, and those of the panel no editor", () => {
    const foreign = product.filter(({ name }) => /^(src\/pure|webview)\//.test(name));
    const wrong = foreign.flatMap(({ name, packages }) =>
      packages.filter((one) => /^(vscode|node:)/.test(one)).map((one) => `${name} imports ${one}`),
    );
    expect(wrong).toEqual([]);
  });

  it("load the language client's library in nothing that is read at activation", () => {
    const early = new Set<string>();
    const load = (name: string): void => {
      if (early.has(name)) return;
      early.add(name);
      const module = product.find((one) => one.name === name);
      const values = [...(module?.text ?? "").matchAll(/^(?:import|export) (?!type )[^;]*?from "([^"]+)"/gm)];
      for (const [, request = ""] of values) {
        expect(request, name).not.toMatch(/^vscode-languageclient/);
        const to = module?.imports.find((one) =>
          one.replace(/\.tsx?$/, "").endsWith(request.replace(/^(\.\.?\/)+/, "/")),
        );
        if (to) load(to);
      }
    };
    load("src/extension.ts");
    expect(early.size).toBeGreaterThan(40);
    expect(early).not.toContain("src/server/client.ts");
  });
});

describe("sizes", () => {
  it(`are at most ${MOST_FILES} files a folder`, () => {
    const counts = new Map<string, number>();
    for (const name of filesIn(["src", "webview", "test"], /\.(tsx?|css)$/))
      counts.set(folderOf(name), (counts.get(folderOf(name)) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count > MOST_FILES)).toEqual([]);
  });

  it(`are at most ${MOST_LINES} lines a file`, () => {
    const sized = filesIn(["src", "webview", "test"], /\.(tsx?|css)$/).map((name) => ({
      name,
      lines: textOf(name).split("\n").length - 1,
    }));
    expect(sized.filter(({ lines }) => lines > MOST_LINES)).toEqual([]);
  });

  it(`are at most ${MOST_FUNCTION_LINES} lines a function`, () => {
    const long = product.flatMap(({ name, functions }) =>
      functions.filter(({ lines }) => lines > MOST_FUNCTION_LINES).map((one) => `${name}: ${one.name} ${one.lines}`),
    );
    expect(long).toEqual([]);
  });
});

describe("words", () => {
  it.each([...product, ...tests].map(({ name, text }) => [name, text]))(
    "at the beginning of %s say in one sentence what it holds",
    (_, text) => {
      const first = (text ?? "").split("\n").find((line) => !line.startsWith("// @vitest")) ?? "";
      expect(first).toMatch(/^\/\/ [A-Z`].*\.$/);
      expect(first.length).toBeLessThan(MOST_WORDS);
    },
  );

  it("of the map name every room, and no other", () => {
    const folders = new Set(filesIn(["src", "webview", "test"], /\.(tsx?|css)$/).map(folderOf));
    expect([...MAP].sort()).toEqual([...folders].sort());
  });
});

it("nothing is exported that no other file uses", () => {
  const everything = [...product, ...tests, ...modulesIn("../tests/editor/host")];
  const unused = [...product, ...tests.filter(({ name }) => !name.startsWith("test/editor/"))].flatMap(
    ({ name, exports }) =>
      exports
        .filter((one) => !everything.some(({ imports, text }) => imports.includes(name) && mentions(text, one)))
        .map((one) => `${name}: ${one}`),
  );
  // The editor calls these by their names.
  expect(unused).toEqual(["src/extension.ts: activate", "src/extension.ts: deactivate"]);
});

const mentions = (text: string, name: string): boolean => new RegExp(`\\b${name}\\b`).test(text);

it("the fake editor has every part of the real one that the extension uses", () => {
  const used = product
    .filter(({ name }) => name.startsWith("src/"))
    .flatMap(({ text }) => [
      ...text.matchAll(/\bvscode\.(window|workspace|commands|languages|env|l10n|extensions|lm)\.(\w+)/g),
      ...text.matchAll(/\b(?:new|instanceof) vscode\.(\w+)/g),
      ...text.matchAll(/\bvscode\.([A-Z]\w+)\.(\w+)/g),
    ]);
  const parts: Record<string, unknown> = { ...vscode };
  const has = (part: unknown, name = ""): boolean => name in (part as Record<string, unknown>);
  const missing = used.filter(([, part = "", member]) => !has(parts, part) || (member && !has(parts[part], member)));
  expect([...new Set(missing.map(([all]) => all))]).toEqual([]);
});

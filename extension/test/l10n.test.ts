// Words: all in both languages, marked where they are written, and named as the palette names them.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { marked, read } from "./lab/strings";

const WORDS = path.join(import.meta.dirname, "..", "..", "server", "daiku", "texts");
const places = (text: string): string[] => [...text.matchAll(/\{\d+\}/g)].map((match) => match[0]).sort();

describe("words", () => {
  const english = read("l10n/bundle.l10n.json");
  const japanese = read("l10n/bundle.l10n.ja.json");

  it("are all in both bundles, and the bundles hold no others", () => {
    expect(Object.keys(english).sort()).toEqual(marked());
    expect(Object.keys(japanese).sort()).toEqual(marked());
  });

  it("stand for themselves in English", () => {
    for (const [key, text] of Object.entries(english)) expect(text).toBe(key);
  });

  it("keep their places for values in Japanese, and are translated", () => {
    for (const [key, text] of Object.entries(japanese)) {
      expect(places(text), key).toEqual(places(key));
      expect(text.trim(), key).not.toBe("");
    }
    const same = Object.entries(japanese).filter(([key, text]) => key === text);
    expect(same).toEqual([]);
  });
});

describe("the manifest", () => {
  const manifest = JSON.stringify(read("package.json"));
  const used = [...new Set([...manifest.matchAll(/"%([\w.]+)%"/g)].map((match) => match[1]))].sort();

  it.each(["package.nls.json", "package.nls.ja.json"])("has all its words in %s, and no others are there", (name) => {
    expect(Object.keys(read(name)).sort()).toEqual(used);
  });
});

describe("the server's words", () => {
  // What a person is told to run has the name that the palette shows them.
  const server = readdirSync(WORDS)
    .filter((name) => /\.(py|json)$/.test(name))
    .map((name) => readFileSync(path.join(WORDS, name), "utf8"));
  const titles = (nls: string) => Object.values(read(nls));
  const named = (pattern: RegExp) => [
    ...new Set(server.flatMap((text) => [...text.matchAll(pattern)].map((match) => match[1]))),
  ];

  it("name commands in Japanese as the palette does", () => {
    const japanese = named(/[「`]Daiku: ([^」`]*[\u3040-\u9fff][^」`]*)[」`]/g);
    expect(japanese.length).toBeGreaterThan(0);
    for (const title of japanese) expect(titles("package.nls.ja.json")).toContain(title);
    expect(server.join("").match(/「Daiku: [\w ]+」/g)).toBeNull();
  });

  it("name commands in English as the palette does", () => {
    for (const title of named(/“Daiku: ([\w ]+)”/g)) expect(titles("package.nls.json")).toContain(title);
  });
});

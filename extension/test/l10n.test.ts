// Words: all in every language, marked where they are written, and named as the palette names them.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { EXTENSION, generated, marked, read } from "./lab/strings";

const WORDS = path.join(import.meta.dirname, "..", "..", "server", "daiku", "texts");
const places = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map((match) => match[0]).sort();

/** What is written by hand in a language: one file each, of which `npm run gen` makes what VS Code reads. */
interface Language {
  manifest: Record<string, string>;
  words?: Record<string, string>;
}
const FOLDER = path.join(EXTENSION, "words");
const languages = readdirSync(FOLDER).map((name) => path.basename(name, ".json"));
const written = (language: string) => read(`words/${language}.json`) as unknown as Language;
const missing = (wanted: Iterable<string>, there: object) => [...wanted].filter((word) => !Object.hasOwn(there, word));

const english = written("en");
const inCode = marked();
const inTables = new Set(generated());
const byHand = inCode.filter((word) => !inTables.has(word));

describe("words", () => {
  it("stand for themselves in English, and VS Code is given them all", () => {
    expect(english.words).toBeUndefined();
    const bundle = read("l10n/bundle.l10n.json");
    expect(Object.keys(bundle).sort()).toEqual(inCode);
    for (const [key, text] of Object.entries(bundle)) expect(text).toBe(key);
  });

  describe.each(languages.filter((language) => language !== "en"))("in %s", (language) => {
    const { manifest, words = {} } = written(language);

    it("are all there, and no others", () => {
      expect(missing(byHand, words)).toEqual([]);
      expect(missing(Object.keys(words), Object.fromEntries(byHand.map((word) => [word, ""])))).toEqual([]);
      expect(missing(inCode, read(`l10n/bundle.l10n.${language}.json`))).toEqual([]);
    });

    it("are all there for the manifest, and no others", () => {
      expect(missing(Object.keys(english.manifest), manifest)).toEqual([]);
      expect(missing(Object.keys(manifest), english.manifest)).toEqual([]);
    });

    it("keep their places for values, and say something", () => {
      for (const [key, text] of [...Object.entries(words), ...Object.entries(manifest)]) {
        expect(places(text), key).toEqual(places(english.manifest[key] ?? key));
        expect(text.trim(), key).not.toBe("");
      }
    });
  });

  it("are translated into Japanese", () => {
    const same = Object.entries(written("ja").words ?? {}).filter(([key, text]) => key === text);
    expect(same).toEqual([]);
  });
});

describe("the manifest", () => {
  const manifest = JSON.stringify(read("package.json"));
  const used = [...new Set([...manifest.matchAll(/"%([\w.]+)%"/g)].map((match) => match[1]))].sort();

  it.each(languages.map((language) => (language === "en" ? "package.nls.json" : `package.nls.${language}.json`)))(
    "has all its words in %s, and no others are there",
    (name) => {
      expect(Object.keys(read(name)).sort()).toEqual(used);
    },
  );
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

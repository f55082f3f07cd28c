// The .vsix has the license text of every package that is bundled, and the notice of the icons.

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { beforeAll, describe, expect, test } from "vitest";

const ROOT = path.resolve(__dirname, "..", "..");
// In a process of its own: esbuild does not run in the context that tests have.
const SCRIPT = `
  import { describeBundles } from "./.dev/build.mjs";
  import { bundledPackages, noticesOf } from "./.dev/notices.mjs";
  const metafiles = await describeBundles();
  const inputs = metafiles.flatMap(({ inputs }) => Object.keys(inputs));
  console.log(JSON.stringify({ inputs, notices: noticesOf(bundledPackages(metafiles, process.cwd())) }));
`;

describe("third-party notices", () => {
  let inputs: string[] = [];
  let notices = "";

  beforeAll(() => {
    const options = { cwd: ROOT, encoding: "utf8", maxBuffer: 50_000_000 } as const;
    const out = execFileSync(process.execPath, ["--input-type=module", "-e", SCRIPT], options);
    ({ inputs, notices } = JSON.parse(out) as { inputs: string[]; notices: string });
  });

  test("name every bundled package with its license text", () => {
    const folders = new Set(inputs.flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(input) ?? []));
    expect(folders.size).toBeGreaterThan(10);
    for (const folder of folders) {
      const { name, version } = JSON.parse(readFileSync(path.join(ROOT, folder, "package.json"), "utf8"));
      const part = notices.split("=".repeat(80)).find((text) => text.includes(`\n${name} ${version} (`));
      expect(part, name).toMatch(/permission|permitted|license/i);
      expect(part?.length, name).toBeGreaterThan(600);
    }
  });

  test("keep the copyright lines of the licenses", () => {
    for (const holder of ["Jason Miller", "Ivan Sagalaev", "Vitaly Puzrin", "Microsoft Corporation"]) {
      expect(notices).toContain(holder);
    }
  });

  test("are packed with the notice of the icons and the security policy", () => {
    const script = readFileSync(path.join(ROOT, ".dev", "package.mjs"), "utf8");
    expect(script).toMatch(/CLIENT = \[[^\]]*"dist"[^\]]*"NOTICE"/);
    expect(script).toMatch(/TEXTS = \[[^\]]*"SECURITY\.md"/);
    expect(readFileSync(path.join(ROOT, ".dev", "build.mjs"), "utf8")).toContain('"NOTICES.txt"');
  });

  test("are packed with the user guides, whose links lead to packed files", async () => {
    const script = path.join(ROOT, ".dev", "package.mjs");
    const { copyGuides } = (await import(script)) as { copyGuides(folder: string): void };
    const folder = mkdtempSync(path.join(tmpdir(), "guides-"));
    copyGuides(folder);
    const pages = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"));
    expect(pages).toContain(path.join("docs", "guide", "work-items.md"));
    expect(pages).toContain(path.join("docs", "ja", "guide", "work-items.md"));
    const dead = pages.flatMap((page) => {
      const text = readFileSync(path.join(folder, page), "utf8");
      expect(text).not.toContain("<!-- generated");
      const targets = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((match) => match[1] ?? "");
      return targets.filter((target) => !existsSync(path.join(folder, path.dirname(page), target)));
    });
    expect(dead).toEqual([]);
    rmSync(folder, { recursive: true });
  });

  test("are packed with marketplace pages whose links and pictures lead to packed files", async () => {
    const script = path.join(ROOT, ".dev", "package.mjs");
    const { copyGuides, marketplacePages } = (await import(script)) as {
      copyGuides(folder: string): void;
      marketplacePages(folder: string): Record<string, string>;
    };
    const folder = mkdtempSync(path.join(tmpdir(), "pages-"));
    copyGuides(folder);
    cpSync(path.join(ROOT, "extension", "media"), path.join(folder, "media"), { recursive: true });
    for (const name of ["README.md", "README.ja.md", "CHANGELOG.md", "SECURITY.md"])
      writeFileSync(path.join(folder, name), "");
    const pages = marketplacePages(folder);
    for (const name of ["README.md", "CHANGELOG.md"])
      renameSync(path.join(folder, name), path.join(folder, name.toLowerCase()));
    for (const [name, text] of Object.entries(pages)) {
      const linked = readFileSync(path.join(ROOT, "extension", name), "utf8").match(/\]\(/g)?.length;
      const targets = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((match) => match[1] ?? "");
      expect(targets.filter((target) => !existsSync(path.join(folder, target)))).toEqual([]);
      expect(targets.length, `${name}: a link was dropped`).toBe(linked);
    }
    rmSync(folder, { recursive: true });
  });

  test("are packed with a README whose links lead to packed files", async () => {
    const script = path.join(ROOT, ".dev", "package.mjs");
    const { dropDeadLinks } = (await import(script)) as { dropDeadLinks(text: string, folder: string): string };
    const text = "[a](README.md) [b](no/file.md#part) [c](https://x.example/) [d](#part) ![e](no.png) [f](README.md#g)";
    expect(dropDeadLinks(text, ROOT)).toBe(
      "[a](README.md) b [c](https://x.example/) [d](#part) ![e](no.png) [f](README.md#g)",
    );
  });
});

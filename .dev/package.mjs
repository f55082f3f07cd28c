// Makes the .vsix: the bundled client, and beside it the server's wheel and the lock of what the server needs.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "./build.mjs";
import { at, digest, nodeProgram, workFolder } from "./places.mjs";
import { must } from "./run.mjs";
import { main, say } from "./say.mjs";
import { ensureNode, ensurePython, toolEnvironment } from "./setup.mjs";

const PAGES = ["README.md", "README.ja.md"];
const CLIENT = ["package.json", "l10n", "media", "dist", "NOTICE", ...PAGES];
const GUIDES = ["docs/guide", "docs/ja/guide"];
const TEXTS = ["CHANGELOG.md", "LICENSE", "SECURITY.md"];

function copyInto(folder, sources) {
  for (const source of sources) {
    if (existsSync(source)) cpSync(source, path.join(folder, path.basename(source)), { recursive: true });
  }
}

/** Replace each relative link whose file is not packed by its text. */
export function dropDeadLinks(text, folder) {
  return text.replace(/(?<!!)\[([^\]]+)\]\((?![a-z]+:|#)([^)#]+)[^)]*\)/g, (link, label, target) =>
    existsSync(path.join(folder, target)) ? link : label,
  );
}

/** Copy the pages of the user guides, without those that only the site fills in. */
export function copyGuides(folder) {
  const pages = GUIDES.flatMap((guide) => readdirSync(at(guide)).map((name) => path.join(guide, name)));
  const packed = pages.filter((page) => !readFileSync(at(page), "utf8").includes("<!-- generated: "));
  for (const page of packed) cpSync(at(page), path.join(folder, page));
  for (const page of packed.map((name) => path.join(folder, name)))
    writeFileSync(page, dropDeadLinks(readFileSync(page, "utf8"), path.dirname(page)));
}

/** Return the marketplace pages by name: their links lead to files that are packed in `folder`. */
export function marketplacePages(folder) {
  const page = (name) => dropDeadLinks(readFileSync(at("extension", name), "utf8").replaceAll("](../", "]("), folder);
  // vsce packs these two files under lowercase names.
  const lowercase = (text) => text.replace(/\]\((README|CHANGELOG)\.md\)/g, (link) => link.toLowerCase());
  return Object.fromEntries(PAGES.map((name) => [name, lowercase(page(name))]));
}

/** A folder with what goes into the package, and nothing else. */
function stage(name) {
  const folder = workFolder("stage", name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  copyInto(
    folder,
    [...CLIENT, ...readdirSync(at("extension")).filter((name) => name.startsWith("package.nls."))].map((part) =>
      at("extension", part),
    ),
  );
  copyInto(
    folder,
    TEXTS.map((part) => at(part)),
  );
  copyGuides(folder);
  for (const [name, text] of Object.entries(marketplacePages(folder))) writeFileSync(path.join(folder, name), text);
  // The map files are for us: they would double the package.
  const dist = path.join(folder, "dist");
  for (const file of existsSync(dist) ? readdirSync(dist) : []) {
    if (file.endsWith(".map")) rmSync(path.join(dist, file));
  }
  const manifest = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  for (const key of ["devDependencies", "dependencies", "scripts"]) delete manifest[key]; // Everything is bundled.
  writeFileSync(path.join(folder, "package.json"), JSON.stringify(manifest, null, 2));
  return folder;
}

async function vsce(folder, out) {
  const options = [
    "package",
    "--no-dependencies",
    "--allow-missing-repository",
    "--no-rewrite-relative-links",
    "--out",
    out,
  ];
  const program = at("node_modules", "@vscode", "vsce", "vsce");
  await must("vsce", nodeProgram, [program, ...options], { cwd: folder, env: toolEnvironment() });
  return out;
}

/** The built client alone, for editors that run the server from the checkout (`DAIKU_DEV_SERVER`). */
export async function packClient() {
  if (!existsSync(at("extension", "dist", "extension.js"))) await build();
  const folder = stage("client");
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const key = digest(...files.map((entry) => readFileSync(path.join(entry.parentPath, entry.name), "latin1")));
  const out = path.join(workFolder(), `client-${key}.vsix`);
  if (existsSync(out)) return out;
  for (const name of readdirSync(workFolder())) {
    if (/^client-.*\.vsix$/.test(name)) rmSync(path.join(workFolder(), name));
  }
  return vsce(folder, out);
}

/** The server's wheel, built with hatchling, in `folder`; answers with its path. */
async function buildWheel(folder) {
  const python = await ensurePython();
  mkdirSync(folder, { recursive: true });
  await must("hatchling", python, ["-m", "hatchling", "build", "-t", "wheel", "-d", folder], {
    cwd: at(),
    env: toolEnvironment(),
  });
  const wheel = readdirSync(folder).find((name) => name.endsWith(".whl"));
  return path.join(folder, wheel);
}

/** The package that people install, in `out`; `server/` in it holds the wheel and requirements.txt. */
export async function packAll(out) {
  await ensureNode();
  await build({ production: true });
  const folder = stage("package");
  const wheel = await buildWheel(path.join(folder, "server"));
  cpSync(at("server", "requirements.txt"), path.join(folder, "server", "requirements.txt"));
  const { name, version } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  mkdirSync(out, { recursive: true });
  cpSync(wheel, path.join(out, path.basename(wheel)));
  return vsce(folder, path.join(out, `${name}-${version}.vsix`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(async () => {
    const out = await packAll(at("dist"));
    say(`${path.relative(process.cwd(), out)}: ${(statSync(out).size / 1024).toFixed(0)} kB`);
  });
}

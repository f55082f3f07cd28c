// Collects the licenses of the packages that are bundled, as their terms ask: name, version, and text of each.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Trouble } from "./say.mjs";

const LEGAL = /^(?:licen[cs]e|copying|notice|third-?party-?notices?)(?:[-.].*)?$/i;
const PACKAGE = /^(.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+))[\\/]/;

/** Return the folders of the packages that esbuild took files from, by `metafiles`, sorted by name. */
export function bundledPackages(metafiles, root) {
  const folders = new Map();
  for (const { inputs } of metafiles) {
    for (const input of Object.keys(inputs)) {
      const found = PACKAGE.exec(path.resolve(root, input));
      if (found) folders.set(found[1], found[2].replace("\\", "/"));
    }
  }
  return [...folders].sort(([, a], [, b]) => a.localeCompare(b)).map(([folder, name]) => ({ folder, name }));
}

/** Return the text of the notices. Raises Trouble if a package has no license text. */
export function noticesOf(packages) {
  const parts = packages.map(({ folder, name }) => {
    const { version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
    const files = readdirSync(folder).filter((file) => LEGAL.test(file));
    if (!files.length) throw new Trouble(`${name} is bundled and has no license file`);
    const texts = files.map((file) => readFileSync(path.join(folder, file), "utf8").trim());
    return [`${name} ${version} (${license})`, ...texts].join("\n\n");
  });
  const head = "Daiku includes the following third-party packages. Their licenses follow.";
  return `${[head, ...parts].join(`\n\n${"=".repeat(80)}\n\n`)}\n`;
}

/** Write the notices of what `metafiles` bundle to `file`. */
export function writeNotices(metafiles, root, file) {
  writeFileSync(file, noticesOf(bundledPackages(metafiles, root)));
}

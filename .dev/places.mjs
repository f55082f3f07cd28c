// Where things are: the checkout, the cache outside it, and the versions of what is fetched.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
export const CACHE = path.resolve(process.env.DAIKU_DEV_CACHE || path.join(os.homedir(), ".cache", "daiku-dev"));

export const NODE_VERSION = "24.21.0";
export const CODE_SERVER_VERSION = "4.139.1";

export const at = (...parts) => path.join(ROOT, ...parts);
export const digest = (...texts) => createHash("sha256").update(texts.join("\0")).digest("hex").slice(0, 12);
export const textOf = (...parts) => (existsSync(at(...parts)) ? readFileSync(at(...parts), "utf8") : "");

/** A folder of this checkout's own in the cache: what tools remember between runs, and reports. */
export function workFolder(...parts) {
  const folder = path.join(CACHE, "work", digest(ROOT), ...parts);
  mkdirSync(folder, { recursive: true });
  return folder;
}

const platform = { win32: "win" }[process.platform] ?? process.platform;

export const nodePackage = `node-${platform}-${process.arch}`;
export const nodeFolder = path.join(CACHE, `node-${NODE_VERSION}`);
export const nodeProgram =
  process.platform === "win32"
    ? path.join(nodeFolder, "node_modules", nodePackage, "bin", "node.exe")
    : path.join(nodeFolder, "node_modules", nodePackage, "bin", "node");
export const labFolder = path.join(CACHE, `lab-${digest(textOf(".dev", "lab.txt"))}`);
export const editorFolder = path.join(CACHE, `code-server-${CODE_SERVER_VERSION}-1`);
export const editorEntry = path.join(editorFolder, "node_modules", "code-server", "out", "node", "entry.js");

export const pythonIn = (venv) =>
  process.platform === "win32" ? path.join(venv, "Scripts", "python.exe") : path.join(venv, "bin", "python");

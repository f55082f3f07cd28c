// Programs that only the system's package manager has: installed through apt when they are missing.

import { existsSync, readdirSync } from "node:fs";
import { run, which } from "./run.mjs";
import { say } from "./say.mjs";

const fontFolders = ["/usr/share/fonts/opentype/noto", "/usr/share/fonts/truetype/noto"];
const hasJapaneseFont = () =>
  fontFolders.some((folder) => existsSync(folder) && readdirSync(folder).some((file) => file.includes("CJK")));

/** What may be missing: how to see that it is there, the Debian package, and what is lost without it. */
const PROGRAMS = {
  git: { there: () => which("git"), apt: "git", loss: "the git tools" },
  ripgrep: { there: () => which("rg"), apt: "ripgrep", loss: "fast search" },
  bubblewrap: { there: () => which("bwrap"), apt: "bubblewrap", loss: "the sandbox for commands" },
  chromium: { there: () => which("chromium") || which("google-chrome"), apt: "chromium", loss: "" },
  neovim: { there: () => which("nvim"), apt: "neovim", loss: "the Neovim test" },
  redis: {
    there: () => which("redis-server"),
    apt: "redis-server",
    loss: "the tests of token counters that are shared",
  },
  "a Japanese font": { there: hasJapaneseFont, apt: "fonts-noto-cjk", loss: "Japanese text in screenshots" },
};

export const FOR_USE = ["git", "ripgrep", "bubblewrap"];
export const FOR_TESTS = [...FOR_USE, "chromium", "neovim", "redis", "a Japanese font"];

const isRoot = () => process.getuid?.() === 0;

/** The words before `apt-get`, or undefined where this person may not install packages, or not without a password. */
async function asRoot() {
  if (isRoot()) return [];
  if (!which("sudo")) return undefined;
  const free = await run("sudo", ["-n", "true"], { capture: true });
  if (free.code === 0) return ["sudo", "-n"];
  return process.stdin.isTTY ? ["sudo"] : undefined;
}

/** Installs Debian packages; answers whether that worked. */
export async function apt(packages) {
  const prefix = await asRoot();
  if (!which("apt-get") || !prefix) return false;
  // Through `env`, because sudo drops variables; on the terminal where sudo asks for the password.
  const start = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"];
  const command = (...args) =>
    run(start[0], [...start.slice(1), ...args], { capture: true, terminal: prefix.length === 1 });
  await command("update");
  const install = (...names) => command("install", "-y", "--no-install-recommends", ...names);
  if ((await install(...packages)).code === 0) return true;
  // One that this distribution does not have must not keep the others away.
  const codes = [];
  for (const name of packages) codes.push((await install(name)).code);
  return codes.every((code) => code === 0);
}

/** Brings in what is missing of `names`; answers with what is still missing after that. */
export async function ensurePrograms(names) {
  const missing = () => names.filter((name) => !PROGRAMS[name].there());
  let absent = missing();
  if (absent.length === 0 || process.env.DAIKU_NO_APT) return absent;
  say(`setting up ${absent.join(", ")} (apt) …`);
  await apt(absent.map((name) => PROGRAMS[name].apt));
  absent = missing();
  for (const name of absent.filter((name) => PROGRAMS[name].loss)) {
    say(
      `${name} is not here and could not be installed: without it, no ${PROGRAMS[name].loss}. Debian package: ${PROGRAMS[name].apt}`,
    );
  }
  return absent;
}

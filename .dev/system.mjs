// Programs that only the system's package manager has: installed through apt when they are missing.

import { existsSync, readdirSync } from "node:fs";
import { run, which } from "./run.mjs";
import { say } from "./say.mjs";

const fontFolders = ["/usr/share/fonts/opentype/noto", "/usr/share/fonts/truetype/noto"];
const hasJapaneseFont = () =>
  fontFolders.some((folder) => existsSync(folder) && readdirSync(folder).some((file) => file.includes("CJK")));

export const chromium = () =>
  process.env.DAIKU_CHROMIUM || which("chromium") || which("google-chrome") || which("chromium-browser");

/** What may be missing: how to see that it is there, the Debian package, and what is lost without it. */
const PROGRAMS = {
  git: { there: () => which("git"), apt: "git", loss: "the git tools" },
  ripgrep: { there: () => which("rg"), apt: "ripgrep", loss: "fast search" },
  bubblewrap: { there: () => which("bwrap"), apt: "bubblewrap", loss: "the sandbox for commands" },
  chromium: { there: chromium, apt: "chromium", loss: "the tests in a real editor" },
  neovim: { there: () => which("nvim"), apt: "neovim", loss: "the Neovim test" },
  "a Japanese font": { there: hasJapaneseFont, apt: "fonts-noto-cjk", loss: "Japanese text in screenshots" },
};

export const FOR_USE = ["git", "ripgrep", "bubblewrap"];
export const FOR_TESTS = [...FOR_USE, "chromium", "neovim", "a Japanese font"];

const isRoot = () => process.getuid?.() === 0;

/** The words before `apt-get`, or undefined where this person may not install packages. */
function asRoot() {
  if (isRoot()) return [];
  if (!which("sudo")) return undefined;
  return process.stdin.isTTY ? ["sudo"] : ["sudo", "-n"];
}

/** Installs Debian packages; answers whether that worked. Says why not in one line. */
export async function apt(packages) {
  const prefix = asRoot();
  if (!which("apt-get") || !prefix) return false;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const command = (...args) => {
    const [program, ...rest] = [...prefix, "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", ...args];
    return run(program, rest, { env, capture: true, terminal: prefix.length === 1 });
  };
  await command("update");
  const done = await command("install", "-y", "--no-install-recommends", ...packages);
  if (done.code !== 0) say(`apt-get could not install ${packages.join(", ")}: ${done.text.trim().split("\n").pop()}`);
  return done.code === 0;
}

/** Brings in what is missing of `names`; answers with what is still missing after that. */
export async function ensurePrograms(names) {
  const missing = () => names.filter((name) => !PROGRAMS[name].there());
  let absent = missing();
  if (absent.length === 0 || process.env.DAIKU_NO_APT) return absent;
  say(`setting up ${absent.join(", ")} (apt) …`);
  await apt(absent.map((name) => PROGRAMS[name].apt));
  absent = missing();
  for (const name of absent) {
    say(
      `${name} is not here and could not be installed: without it, no ${PROGRAMS[name].loss}. Debian package: ${PROGRAMS[name].apt}`,
    );
  }
  return absent;
}

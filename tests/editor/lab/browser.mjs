// Debian's Chromium, headless, with a profile of its own.

import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";
import { ensureBrowser } from "../../../.dev/setup.mjs";

const FLAGS = [
  "--headless",
  "--no-sandbox", // CI runs as root, where Chromium's own sandbox cannot start.
  "--disable-gpu",
  "--disable-quic",
  "--disable-sync",
  "--disable-background-networking",
  "--disable-component-update",
  "--no-first-run",
  "--lang=en-US",
];

/** Starts a browser; answers with its page, its context, and what stops it. */
export async function startBrowser({ width = 1400, height = 900, locale = "en-US" } = {}) {
  const profile = mkdtempSync(path.join(os.tmpdir(), "daiku-browser-"));
  // `headless: false` with the flag: Playwright's own headless mode wants a different build of Chromium.
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.DAIKU_DEV_CHROMIUM || (await ensureBrowser()),
    headless: false,
    args: FLAGS,
    viewport: { width, height },
    locale,
  });
  const page = context.pages()[0] ?? (await context.newPage());
  const stop = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  return { context, page, stop };
}

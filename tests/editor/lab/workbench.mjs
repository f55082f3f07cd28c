// What a person does in VS Code's workbench: open a folder, run a command, open a file, look into a webview.

import { mkdirSync } from "node:fs";
import path from "node:path";
import { workFolder } from "../../../.dev/places.mjs";

export const SHOTS = process.env.DAIKU_SHOTS || workFolder("shots");
const WIDGET = ".quick-input-widget:visible";

export class Workbench {
  constructor(page) {
    this.page = page;
  }

  /** Opens a folder and waits until the workbench and its explorer are there. */
  async open(url, folder) {
    await this.page.goto(`${url}/?folder=${encodeURIComponent(folder)}`);
    await this.ready();
  }

  async ready() {
    await this.page.waitForSelector(".monaco-workbench .part.statusbar", { timeout: 90_000 });
    await this.page.waitForSelector(".explorer-folders-view .monaco-list-row", { timeout: 60_000 });
  }

  /** Reloads the window, as a person does with F5. */
  async reload() {
    await this.page.reload();
    // Not the explorer: another side bar may have been open.
    await this.page.waitForSelector(".monaco-workbench .part.statusbar", { timeout: 90_000 });
  }

  /** A screenshot under `DAIKU_SHOTS`; answers with its path. */
  async shot(name) {
    mkdirSync(SHOTS, { recursive: true });
    const file = path.join(SHOTS, `${name}.png`);
    // A menu that only begins to be seen is shown as it will be.
    await this.page.screenshot({ path: file, animations: "disabled" });
    return file;
  }

  /** The row of the palette that says `pick`; an open palette does not learn of later commands, so it is reopened. */
  async paletteRow(typed, pick, timeout = 30_000) {
    const input = this.page.locator(`${WIDGET} input.input`);
    const row = this.page.locator(`${WIDGET} .quick-input-list .monaco-list-row`, { hasText: pick }).first();
    const end = Date.now() + timeout;
    for (;;) {
      await this.page.keyboard.press("F1");
      try {
        await input.fill(typed, { timeout: 1500 }); // it may still fade away from its use before
        await row.waitFor({ timeout: 1500 });
        return row;
      } catch (error) {
        if (Date.now() > end) throw new Error(`the palette has no "${pick}" for "${typed}"`, { cause: error });
        await this.page.keyboard.press("Escape");
      }
    }
  }

  /** Runs a command by its title in the palette. */
  async command(title) {
    const row = await this.paletteRow(`>${title}`, title);
    await row.click();
  }

  /** Opens a file by name and waits until `marker` is seen in it. */
  async openFile(name, marker) {
    const row = await this.paletteRow(name, name);
    await row.click();
    await this.page.locator(".monaco-editor .view-lines", { hasText: marker }).first().waitFor({ timeout: 15_000 });
  }

  /** Types into the open quick input (an input box or a picker) and accepts. */
  async answer(text) {
    const input = this.page.locator(`${WIDGET} input.input`);
    await input.waitFor({ state: "visible", timeout: 15_000 });
    await input.fill(text);
    await this.page.keyboard.press("Enter");
  }

  /** The notification that says `text`. */
  notice(text) {
    return this.page.locator(".notifications-toasts .notification-list-item", { hasText: text });
  }

  /** The item of the status bar that says `text`. */
  statusItem(text) {
    return this.page.locator(".statusbar-item", { hasText: text });
  }

  /** The frame whose own document has `selector`: a webview's content is two frames deep. */
  async webview(selector, timeout = 30_000) {
    const end = Date.now() + timeout;
    while (Date.now() < end) {
      for (const frame of this.page.frames()) {
        // A frame may go away while it is asked: a webview that is being replaced.
        if (
          await frame
            .locator(selector)
            .count()
            .catch(() => 0)
        )
          return frame;
      }
      await this.page.waitForTimeout(100);
    }
    throw new Error(`no webview shows ${selector}`);
  }
}

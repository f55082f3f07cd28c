// Daiku's panel as a person uses it: write, read, allow, look back.

export class Panel {
  constructor(workbench, frame) {
    this.workbench = workbench;
    this.frame = frame;
  }

  /** Opens the panel, as wide as people have it. */
  static async open(workbench, { width = 430 } = {}) {
    await workbench.command("Daiku: Open Chat");
    const panel = new Panel(workbench, await workbench.webview("textarea.composer-text"));
    await panel.widen(width);
    return panel;
  }

  /** Drags the edge of the side bar. */
  async widen(width) {
    const { page } = this.workbench;
    const bar = await page.locator(".part.sidebar").boundingBox();
    await page.mouse.move(bar.x + bar.width, 400);
    await page.mouse.down();
    await page.mouse.move(bar.x + width, 400, { steps: 5 });
    await page.mouse.up();
  }

  get composer() {
    return this.frame.locator("textarea.composer-text");
  }

  /** The card that asks, while it does. */
  get approval() {
    return this.frame.locator(".approval.card");
  }

  async say(text) {
    await this.composer.click();
    await this.composer.pressSequentially(text);
    await this.composer.press("Enter");
  }

  /** Waits for a card that contains `text`, and presses one of its buttons. */
  async decide(text, button) {
    const card = this.approval.filter({ hasText: text });
    await card.waitFor({ timeout: 30_000 });
    // The card is deaf for its first half second, to keys and clicks that were meant for something else.
    await this.workbench.page.waitForTimeout(700);
    await card.getByRole("button", { name: button, exact: true }).click();
    await card.waitFor({ state: "detached", timeout: 15_000 });
  }

  /** Waits until `count` runs have ended. */
  async ended(count = 1) {
    await this.frame
      .locator(".item-end")
      .nth(count - 1)
      .waitFor({ timeout: 60_000 });
  }

  items() {
    return this.frame.locator(".items");
  }

  text() {
    return this.items().innerText();
  }
}

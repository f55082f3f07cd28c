// The side panel: what its page may do, what it is sent, and what its icon says.

import { beforeEach, expect, it } from "vitest";
import { createPanel } from "../../src/chat/panel";
import type { FromPanel } from "../../src/pure/chat/panel";
import { commands, openView, reset, settle, Uri, views } from "../editor/editor";

function world() {
  const received: FromPanel[] = [];
  const panel = createPanel(Uri.file("/extension"), (message) => received.push(message));
  views.set("daiku.chat", panel);
  return { panel, received, ...openView() };
}

beforeEach(reset);

it("runs our script and nothing else, and fetches nothing but our style and font", () => {
  const { view } = world();
  const { html, options } = view.webview;
  const policy = /Content-Security-Policy" content="([^"]+)"/.exec(html)?.[1] ?? "";
  const nonce = /'nonce-([^']+)'/.exec(policy)?.[1] ?? "";
  expect(nonce.length).toBeGreaterThan(20);
  expect(policy.split("; ").map((rule) => rule.split(" ")[0])).toEqual([
    ...["default-src", "style-src", "font-src", "script-src", "form-action", "base-uri"],
  ]);
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain("unsafe");
  expect([...html.matchAll(/<script[^>]*>/g)]).toHaveLength(1);
  expect(html).toContain(`<script nonce="${nonce}" src=`);
  expect(options).toMatchObject({ enableForms: false, localResourceRoots: [{ path: "/extension/dist" }] });
  expect(world().view.webview.html).not.toContain(nonce);
});

it("is sent nothing before it listens, nor while it is out of sight", () => {
  const { panel, say, told, see } = world();
  panel.post({ type: "focus", what: "history" });
  expect(told).toEqual([]);
  say({ type: "ready" });
  panel.post({ type: "focus", what: "composer" });
  see(false);
  panel.post({ type: "focus", what: "history" });
  expect(told).toEqual([{ type: "focus", what: "composer" }]);
});

it("that is revealed is waited for until it listens", async () => {
  const { panel, say } = world();
  const order: string[] = [];
  commands.registerCommand("daiku.chat.focus", () => order.push("focus"));
  const revealing = panel.reveal().then(() => order.push("revealed"));
  await settle();
  expect(order).toEqual(["focus"]);
  say({ type: "ready" });
  await revealing;
  expect(order).toEqual(["focus", "revealed"]);
});

it("says when it goes out of sight, and hands on what it is asked", () => {
  const { panel, say, see, received } = world();
  let hidden = 0;
  panel.onHidden(() => hidden++);
  say({ type: "stop" });
  see(false);
  see(true);
  expect([hidden, received, panel.visible()]).toEqual([1, [{ type: "stop" }], true]);
});

it("has on its icon how many questions wait, also where it is opened later", () => {
  const panel = createPanel(Uri.file("/extension"), () => undefined);
  panel.count(2);
  views.set("daiku.chat", panel);
  const { view } = openView();
  expect(view.badge).toMatchObject({ value: 2, tooltip: "2 pending requests" });
  panel.count(0);
  expect(view.badge).toBeUndefined();
});

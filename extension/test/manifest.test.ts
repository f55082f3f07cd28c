// Promises that the manifest makes: keys that write no letters anywhere, settings in an order, no policy from strangers.

import { describe, expect, it } from "vitest";
import { read } from "./lab/strings";

interface Key {
  command: string;
  key: string;
  mac?: string;
  when?: string;
}
interface Setting {
  scope?: string;
  order?: number;
}

const manifest = read("package.json") as unknown as {
  contributes: {
    keybindings: Key[];
    commands: { command: string }[];
    configuration: { title: string; order: number; properties: Record<string, Setting> }[];
    viewsWelcome: { view: string; when?: string }[];
  };
};
const { keybindings, configuration } = manifest.contributes;

/** AltGr is Ctrl+Alt on Windows: with a key that writes something it writes something else (ą, €, @, …). */
const writes = (key: string): boolean =>
  key.split(" ").some((stroke) => {
    const names = stroke.split("+");
    const held = new Set(names.slice(0, -1));
    return (
      held.has("alt") && (held.has("ctrl") || held.size === 1 || !held.has("cmd")) && (names.at(-1) ?? "").length === 1
    );
  });

describe("keys", () => {
  it.each(keybindings.map(({ command, key }) => [command, key]))(
    "of %s (%s) write no letter on any layout",
    (_, key) => {
      expect(writes(key)).toBe(false);
    },
  );

  it.each(["ctrl+alt+z", "ctrl+alt+shift+y", "alt+e", "ctrl+alt+8", "ctrl+k ctrl+alt+a"])(
    "such as %s would be found",
    (key) => {
      expect(writes(key)).toBe(true);
    },
  );

  it("that change files are only there while there is something to change", () => {
    for (const { command, when = "" } of keybindings)
      if (/accept|reject|undo|redo|approve|remove|delete|move/i.test(command)) expect(when, command).not.toBe("");
    const whenOf = (command: string) => keybindings.filter((one) => one.command === command).map(({ when }) => when);
    for (const when of whenOf("daiku.undo")) expect(when).toContain("daiku.canUndo");
    for (const when of whenOf("daiku.redo")) expect(when).toContain("daiku.canRedo");
  });

  it("are one command's alone where their conditions hold together", () => {
    const seen = new Map<string, Key>();
    for (const one of keybindings) {
      const same = seen.get(`${one.key} ${one.when}`);
      expect(same, `${one.key}: ${same?.command} and ${one.command}`).toBeUndefined();
      seen.set(`${one.key} ${one.when}`, one);
    }
  });
});

describe("settings", () => {
  const all = configuration.flatMap(({ properties }) => Object.entries(properties));

  it("come in an order of their own, in each group from 1", () => {
    for (const { title, properties } of configuration) {
      const orders = Object.values(properties).map(({ order }) => order);
      expect(orders, title).toEqual(orders.map((_, n) => n + 1));
    }
    expect(new Set(configuration.map(({ order }) => order)).size).toBe(configuration.length);
  });

  it.each(all.filter(([name]) => /approvals|sandbox|baseUrl|server\.command|openai\.api|review/.test(name)))(
    "%s is no workspace's to set",
    (_, { scope }) => {
      expect(["application", "machine"]).toContain(scope);
    },
  );

  it("about a machine's own places differ by machine; a person's policy is one everywhere", () => {
    for (const [name, { scope }] of all) {
      if (/baseUrl|sandbox\.write|server\.command/.test(name)) expect(scope, name).toBe("machine");
      else if (/approvals|sandbox/.test(name)) expect(scope, name).toBe("application");
    }
  });
});

describe("the tree of changes", () => {
  it("says that nothing waits only where that is known", () => {
    const [known, unknown] = manifest.contributes.viewsWelcome.filter(({ view }) => view === "daiku.changes");
    expect([known?.when, unknown?.when]).toEqual(["daiku.changesKnown", "!daiku.changesKnown"]);
  });
});

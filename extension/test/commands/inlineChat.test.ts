// The request at the selection: sent to the last letter, in a chat of its own, and its answer is seen.

import { beforeEach, describe, expect, it } from "vitest";

import { type InlineParts, inlineChat } from "../../src/commands/inlineChat";
import type { ChangedFile, RunResult } from "../../src/contract.gen";
import { box, commands, editorOf, person, reset, seen, window } from "../editor/editor";

const breath = () => new Promise((resolve) => setTimeout(resolve, 0));
const fileOf = (sessionId: string, path: string): ChangedFile => ({
  ...{ sessionId, path, kind: "edit", added: 1, removed: 1, binary: false },
  hunks: [
    {
      hunkId: path,
      oldStart: 1,
      oldLines: 1,
      newStart: 1,
      newLines: 1,
      text: "-a\n+b\n",
      state: "open",
      touched: false,
    },
  ],
});

function world(result: Partial<RunResult> = {}, files: ChangedFile[] = []) {
  const sent: { text: string; options: unknown }[] = [];
  const opened: string[] = [];
  const wentTo: string[] = [];
  const whole = { sessionId: "own", status: "completed", text: "", ...result };
  const parts = {
    chat: {
      send: async (text: string, _: unknown, options: unknown) => {
        sent.push({ text, options });
        return whole;
      },
      open: async (session: string) => opened.push(session),
    },
    changes: {
      files,
      refresh: async () => undefined,
      of: (uri: { path: string }) => files.filter(({ path }) => uri.path === `/project/${path}`),
    },
    originals: { open: async ({ path }: ChangedFile) => wentTo.push(path) },
    panel: { reveal: async () => undefined },
  } as unknown as InlineParts;
  window.activeTextEditor = editorOf("price.py", "price = 1\n");
  return { parts, sent, opened, wentTo };
}

async function say(parts: InlineParts, text: string): Promise<void> {
  const done = inlineChat(parts);
  await breath();
  box?.type(text);
  box?.enter();
  await done;
}

beforeEach(() => {
  reset();
  window.showTextDocument = async (uri?: unknown) => void seen.opened.push(String(uri));
});

describe("a request at the selection", () => {
  it.each(["delete line 10", "please end", "x", "値段を直して"])(
    "is sent as it was typed, however fast: %s",
    async (text) => {
      const { parts, sent } = world();
      for (const before of ["delete line 1", "x y z", text]) {
        await say(parts, before);
        await say(parts, text);
        expect(sent.at(-1)?.text).toBe(text);
      }
    },
  );

  it("is not sent while nothing is written, or when it is given up", async () => {
    const { parts, sent } = world();
    const done = inlineChat(parts);
    await breath();
    box?.type("  ");
    box?.enter();
    expect(sent).toEqual([]);
    box?.escape();
    await done;
    expect(sent).toEqual([]);
    expect(seen.context.get("daiku.inlineChatOpen")).toBe(false);
  });

  it("recalls what was asked before, newest first, and comes back to what was begun", async () => {
    const { parts, sent } = world();
    for (const text of ["first", "second"]) await say(parts, text);
    const done = inlineChat(parts);
    await breath();
    box?.type("begun");
    const values: (string | undefined)[] = [];
    for (const way of ["previous", "previous", "next", "next"]) {
      await commands.executeCommand(`daiku.inlineChat.${way}`);
      values.push(box?.value);
    }
    expect(values).toEqual(["second", "first", "second", "begun"]);
    await commands.executeCommand("daiku.inlineChat.previous");
    box?.enter();
    await done;
    expect(sent.at(-1)?.text).toBe("second");
  });

  it("is made in a chat of its own, and grants the lines that it was asked for and nothing else", async () => {
    const { parts, sent } = world();
    await say(parts, "Do it");
    const range = { start: { line: 0, character: 0 }, end: { line: 0, character: 9 } };
    const grant = { uri: "file:///project/price.py", range };
    expect(sent[0]?.options).toEqual({ ownChat: true, mode: "act", grant });
    expect(sent[0]?.options).not.toHaveProperty("approvals");
  });

  it("that changed nothing shows its answer, and leaves older changes of others alone", async () => {
    const { parts, opened, wentTo } = world({ text: "It is the price." }, [
      fileOf("older", "big.py"),
      fileOf("older", "price.py"),
    ]);
    person.picks = () => "Show";
    await say(parts, "What is this?");
    await breath();
    expect([seen.messages, opened, wentTo, seen.opened]).toEqual([["It is the price."], ["own"], [], []]);
  });

  it("goes to what it changed, in this file first", async () => {
    const { parts } = world({}, [fileOf("own", "a.py"), fileOf("older", "price.py"), fileOf("own", "price.py")]);
    await say(parts, "Do it");
    expect(seen.opened.at(-1)).toContain("price.py");
    const other = world({}, [fileOf("older", "price.py"), fileOf("own", "a.py")]);
    await say(other.parts, "Do it");
    expect(seen.opened.at(-1)).toContain("a.py");
  });

  it("that failed says so", async () => {
    const { parts } = world({ status: "failed", text: "The key was refused." });
    await say(parts, "Do it");
    expect(seen.messages).toEqual(["The key was refused."]);
  });
});

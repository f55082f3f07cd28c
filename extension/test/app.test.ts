// The extension as a whole: what it starts and asks, and what it leaves alone in a workspace without trust.

import { beforeEach, describe, expect, it, vi } from "vitest";
import { window } from "vscode";
import { createApp } from "../src/app";
import type { Chunk } from "../src/contract.gen";
import type { ToPanel } from "../src/pure/chat/panel";
import {
  commands,
  configure,
  contextOf,
  openView,
  person,
  registered,
  reset,
  seen,
  settle,
  trees,
  trust,
  workspaceEvents,
} from "./editor/editor";
import { ended, sessionOf, underWay } from "./lab/chat";
import { session as chunksOf } from "./lab/chunks";
import { type Answers, type FakeServer, serverOf } from "./lab/server";
import { read } from "./lab/strings";

const lab = vi.hoisted(() => ({ server: undefined as unknown }));
// A real one is a process, which tests/editor start.
vi.mock("../src/server/server", () => ({ createServer: () => lab.server }));

function world(answers: Answers = {}, phase: "off" | "ready" = "off", context = contextOf("/storage")) {
  const kept: Chunk[] = [];
  const server = serverOf({
    "daiku/models": () => ({ models: [], providers: [], selected: "lab/one" }),
    "daiku/session/list": () => ({ sessions: [] }),
    "daiku/session/get": ({ sessionId }: { sessionId: string }) => ({
      session: sessionOf(sessionId),
      chunks: kept,
    }),
    "daiku/changes/list": () => ({ files: [] }),
    "daiku/chat": () => ended("s1"),
    ...answers,
  });
  server.become(phase);
  lab.server = server;
  const app = createApp(context);
  return { app, context, server, kept };
}

const chatsOf = (server: FakeServer) => server.asked.filter(({ method }) => method === "daiku/chat");
const situationIn = (told: readonly ToPanel[]) => told.findLast((message) => message.type === "situation")?.situation;

beforeEach(reset);

describe("a window that was opened for a work item that was taken over", () => {
  const taken = (at: number, folder = "/project") => {
    const context = contextOf("/storage");
    void context.globalState.update("daiku.takenOver", { folder, session: "s7", at });
    return world({}, "off", context);
  };

  it("has its chat open, and no other window has", async () => {
    const { app, context } = taken(Date.now());
    expect(app.chat.current).toBe("s7");
    await settle();
    expect(seen.commands.map(({ name }) => name)).toContain("daiku.chat.focus");
    expect(context.globalState.get("daiku.takenOver")).toBeUndefined();
  });

  it.each([
    ["another folder", Date.now(), "/other"],
    ["the same folder, later", Date.now() - 120_000, "/project"],
  ])("but %s has not", (_, at, folder) => {
    expect(taken(at, folder).app.chat.current).toBeUndefined();
  });
});

describe("a chat that a worker's item has", () => {
  it("is caught up with as the item's news come", async () => {
    const item = { item: "files:mend", title: "Mend", state: "processing", sessionId: "s7" };
    const { say } = { say: chunksOf("s7") };
    const told = [{ revision: "1", items: [item] }];
    const answer = () => told.shift() ?? new Promise(() => undefined);
    const { app, kept, server } = world({ "daiku/work/watch": answer }, "ready");
    await app.chat.open("s7");
    kept.push(say("message", { text: "So." }));
    trees.get("daiku.work")?.look();
    await settle();
    expect(app.chat.chunks.map(({ type }) => type)).toEqual(["message"]);
    expect(server.methods()).toContain("daiku/work/watch");
  });
});

describe("what a run taught", () => {
  it("is shown in its chat as soon as the server tells of it, after the end of the run and its stream", async () => {
    const answers: ((told: object) => void)[] = [];
    const { app, kept } = world(
      {
        "daiku/playbook/watch": () => new Promise((resolve) => answers.push(resolve)),
        "daiku/playbook/list": () => ({ bullets: [], resting: [], sections: [] }),
        "daiku/playbook/deltas": () => ({ deltas: [] }),
      },
      "ready",
    );
    const say = chunksOf("s1");
    await app.chat.open("s1");
    await app.chat.send("Run the tests.", []);
    await settle();
    kept.push(say("bullet", { bulletId: "r1", change: "proposed", content: "Use make check." }));
    expect(app.chat.chunks).toEqual([]);
    answers.at(-1)?.({ revision: "1", active: 0, waiting: 1, repository: true });
    await settle();
    expect(app.chat.chunks.map(({ type }) => type)).toEqual(["bullet"]);
  });
});

describe("in a workspace without trust", () => {
  beforeEach(() => trust(false));

  it("nothing is started or asked, neither at activation nor when the panel is opened", async () => {
    const { server } = world();
    const { say, told } = openView();
    say({ type: "ready" });
    await settle(20);
    expect([server.starts.count, server.methods(), server.state.phase]).toEqual([0, [], "off"]);
    expect(told[0]).toMatchObject({ type: "hello", situation: { trusted: false, mode: "ask" } });
  });

  it("a tree that is looked at starts nothing either", async () => {
    const { server } = world();
    for (const { provider, look } of trees.values()) {
      look();
      await provider.getChildren();
    }
    await settle();
    expect([trees.size, server.starts.count]).toEqual([5, 0]);
  });

  it("a server that runs already is asked by a panel that opens", async () => {
    const { server } = world({}, "ready");
    openView().say({ type: "ready" });
    await settle(20);
    expect(server.starts.count).toBeGreaterThan(0);
  });

  it("a request is made in mode Ask, whichever mode was chosen", async () => {
    const { server, context } = world();
    await context.workspaceState.update("daiku.mode", "act");
    const { say } = openView();
    say({ type: "ready" });
    say({ type: "send", text: "Do it", context: [] });
    await settle(20);
    expect(chatsOf(server).map(({ params }) => params.mode)).toEqual(["ask"]);
  });

  it("and once it is trusted, the server starts and the chosen mode is offered", async () => {
    const { server, context } = world();
    await context.workspaceState.update("daiku.mode", "plan");
    const { say, told } = openView();
    say({ type: "ready" });
    trust(true);
    workspaceEvents.trust.fire();
    await settle(20);
    expect(server.starts.count).toBeGreaterThan(0);
    expect(situationIn(told)).toMatchObject({ trusted: true, mode: "plan" });
  });

  it("a server that runs is restarted when trust is given: it was told at its start", async () => {
    const { server } = world({}, "ready");
    trust(true);
    workspaceEvents.trust.fire();
    await settle();
    expect(server.starts.restarts).toEqual(["the workspace is trusted now"]);
  });
});

describe("in a trusted workspace", () => {
  it("the server starts by itself, after the activation", async () => {
    const { server } = world();
    expect(server.starts.count).toBe(0);
    await settle(20);
    expect(server.starts.count).toBeGreaterThan(0);
  });

  it("what is only seen is made after the activation, and not at all where the window closes before", async () => {
    const items = vi.spyOn(window, "createStatusBarItem");
    world();
    expect(items).not.toHaveBeenCalled();
    await settle(20);
    const made = items.mock.calls.length;
    expect(made).toBeGreaterThan(1);
    const { context } = world();
    for (const one of context.subscriptions) one.dispose();
    await settle(20);
    expect(items).toHaveBeenCalledTimes(made);
  });

  it.each([
    ["workspaceValue", "ask"],
    ["globalValue", "edits"],
  ] as const)("what is approved beforehand is the person's word alone: %s makes it %s", async (layer, approvals) => {
    configure("daiku.review", "after", layer);
    const { app, server } = world();
    await app.chat.send("Do it", []);
    expect(chatsOf(server)[0]?.params.approvals).toBe(approvals);
  });

  it("the mode that is chosen in the panel is kept and told", async () => {
    const { context } = world();
    const { say, told } = openView();
    say({ type: "ready" });
    say({ type: "setMode", mode: "plan" });
    await settle();
    expect(context.workspaceState.get("daiku.mode")).toBe("plan");
    expect(situationIn(told)?.mode).toBe("plan");
  });

  it("keeps the approval level chosen in the panel as the user's own setting", async () => {
    world();
    const { say, told } = openView();
    say({ type: "ready" });
    say({ type: "setApprovals", approvals: "sandbox" });
    await settle();
    expect(situationIn(told)?.approvals).toBe("sandbox");
  });

  it("sends a message at the level just chosen, before the editor has written it to the settings", async () => {
    const { app, server } = world();
    const { say } = openView();
    say({ type: "ready" });
    say({ type: "setApprovals", approvals: "sandbox" });
    await app.chat.send("Do it", []);
    expect(chatsOf(server)[0]?.params.approvals).toBe("sandbox");
    await settle();
    configure("daiku.review", "after");
    await app.chat.send("Do it again", []);
    expect(chatsOf(server)[1]?.params.approvals).toBe("edits");
  });

  it("what was open is fetched again when the server has started", async () => {
    const { app, server, context } = world();
    await context.workspaceState.update("daiku.session", "s1");
    expect(app.chat.current).toBeUndefined();
    const again = createApp(context);
    server.become("ready");
    await settle(20);
    expect(again.chat.current).toBe("s1");
    expect(server.methods()).toContain("daiku/session/get");
  });
});

describe("what the server was told at its start", () => {
  it("has it restarted when it changes: a setting, an API key", async () => {
    const { server, context } = world({}, "ready");
    configure("daiku.llm.model", "lab/two");
    await context.secrets.store("daiku.apiKey.openai", "k");
    await settle();
    expect(server.starts.restarts).toEqual(["settings changed", "an API key changed"]);
  });

  it("is not what is the extension's own, nor somebody else's", async () => {
    const { server, context } = world({}, "ready");
    configure("daiku.codeLens", true);
    configure("daiku.review", "after");
    configure("editor.fontSize", 12);
    await context.secrets.store("somebody.else", "k");
    await settle();
    expect(server.starts.restarts).toEqual([]);
  });

  it("changes nothing for a server that does not run", async () => {
    trust(false);
    const { server } = world();
    configure("daiku.llm.model", "lab/two");
    await settle();
    expect([server.starts.restarts, server.starts.count]).toEqual([[], 0]);
  });

  it("waits for the end of a run, and restarts once", async () => {
    const { answer, end } = underWay();
    const { app, server } = world({ "daiku/chat": answer }, "ready");
    const running = app.chat.send("Do it", []);
    await settle();
    configure("daiku.llm.model", "lab/two");
    configure("daiku.llm.provider", "lab");
    expect(server.starts.restarts).toEqual([]);
    end("s1");
    await running;
    expect(server.starts.restarts).toEqual(["settings changed"]);
    const again = app.chat.send("Go on", []);
    await settle();
    end("s1");
    await again;
    expect(server.starts.restarts).toEqual(["settings changed"]);
  });
});

describe("keys and menus", () => {
  it("have a command for everything that the manifest names, and the manifest names every command", () => {
    world();
    const manifest = read("package.json") as unknown as { contributes: { commands: { command: string }[] } };
    const named = manifest.contributes.commands.map(({ command }) => command);
    // Those of an open input box are there while it is.
    const always = named.filter((name) => !/^daiku\.inlineChat\./.test(name));
    expect(always.filter((name) => !registered().includes(name))).toEqual([]);
    expect(registered().filter((name) => !named.includes(name))).toEqual(INTERNAL);
  });

  it("know whether something can be undone or brought back, of the open chat", async () => {
    const { app, kept } = world({}, "ready");
    const say = chunksOf("s1");
    kept.push(say("run_started", {}), say("edit", { checkpointId: "c1" }));
    await app.chat.open("s1");
    const keys = () => ["canUndo", "canRedo", "chatOpen"].map((name) => seen.context.get(`daiku.${name}`));
    expect(keys()).toEqual([true, false, true]);
    kept.push(say("restored", { checkpointId: "c1", redo: "k1" }));
    await app.chat.open("s1");
    expect(keys()).toEqual([false, true, true]);
    app.chat.newChat();
    expect(keys()).toEqual([false, false, false]);
  });
});

/** What the editor itself calls to open the view. */
const INTERNAL = ["daiku.chat.open"];

describe("a question that waits out of sight", () => {
  it("leads to the panel, and there to the question", async () => {
    const { answer, end } = underWay();
    const { app, server } = world({ "daiku/chat": answer }, "ready");
    const { say, told, see, view } = openView();
    say({ type: "ready" });
    see(false);
    commands.registerCommand("daiku.chat.focus", () => say({ type: "ready" }));
    person.picks = () => "Show";
    const running = app.chat.send("Do it", []);
    await settle();
    const chunk = chunksOf("s1");
    server.stream(chunk("run_started", {}), chunk("approval_asked", { approvalId: "a1" }));
    await settle(20);
    expect(seen.messages).toEqual(["Daiku wants to run: npm test"]);
    expect(view.badge?.value).toBe(1);
    expect(told).toContainEqual({ type: "focus", what: "approval" });
    expect(seen.context.get("daiku.waiting")).toBe(true);
    end("s1");
    await running;
    expect([view.badge, seen.context.get("daiku.waiting")]).toEqual([undefined, false]);
  });
});

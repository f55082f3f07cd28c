// What a window sends, keeps and shows of conversations, each apart from the others.

import { beforeEach, describe, expect, it } from "vitest";
import type { Chat } from "../../src/chat/chat";
import type { Chunk } from "../../src/contract.gen";
import { reset, settle, trust } from "../editor/editor";
import { chatWorld, ended, sessionOf, underWay } from "../lab/chat";
import { session as chunksOf } from "../lab/chunks";

beforeEach(reset);

describe("a request to the server", () => {
  it.each([
    [true, "plan", "plan"],
    [true, "act", "act"],
    [false, "plan", "ask"],
    [false, "act", "ask"],
  ] as const)("in a workspace that is trusted: %s, with mode %s, is made in mode %s", async (trusted, mode, sent) => {
    trust(trusted);
    const { chat, server } = chatWorld({ "daiku/chat": () => ended("s1") });
    await chat.send("Do it", [], { mode });
    expect(server.asked[0]?.params).toMatchObject({ text: "Do it", mode: sent });
  });

  it("is approved of as the person's settings say, also where it was made beside the open chat", async () => {
    for (const approvals of ["ask", "edits"] as const) {
      const { chat, server } = chatWorld({ "daiku/chat": () => ended("s1") }, approvals);
      await chat.send("Do it", []);
      await chat.send("Do it", [], { ownChat: true });
      expect(
        server.asked.filter(({ method }) => method === "daiku/chat").map(({ params }) => params.approvals),
      ).toEqual([approvals, approvals]);
    }
  });
});

describe("what a server streams", () => {
  it("is shown where it belongs to the open chat, and nowhere else", async () => {
    const { answer, end } = underWay();
    const { chat, server, posted } = chatWorld({ "daiku/chat": answer });
    const one = chunksOf("s1");
    const running = chat.send("One", []);
    await settle();
    server.stream(one("run_started", {}), one("message", { text: "Of the first" }));
    await settle();
    chat.newChat();
    posted.length = 0;
    server.stream(one("message", { text: "Of the first, later" }));
    await settle();
    expect(posted.filter(({ type }) => type === "chunks")).toEqual([]);
    end("s1");
    await running;
    expect(posted.filter(({ type }) => type === "chunks")).toEqual([]);
    await chat.open("s1");
    expect(chat.current).toBe("s1");
  });

  it("of a request made aside leaves the open chat alone, and says when it asks something", async () => {
    const { answer, end } = underWay();
    const { chat, server, posted } = chatWorld({ "daiku/chat": answer });
    const elsewhere: string[] = [];
    chat.onAskedElsewhere((session) => elsewhere.push(session));
    const running = chat.send("Aside", [], { ownChat: true });
    await settle();
    expect(chat.working).toBe(false);
    const one = chunksOf("s9");
    server.stream(one("run_started", {}), one("approval_asked", { approvalId: "a1" }));
    await settle();
    expect([chat.current, chat.waiting.length, elsewhere]).toEqual([undefined, 0, ["s9"]]);
    expect(posted.filter(({ type }) => type === "chunks" || type === "session")).toEqual([]);
    await chat.open("s9");
    expect([chat.working, chat.waiting.length]).toEqual([true, 1]);
    end("s9");
    await running;
  });
});

describe("what arrives while the person turns to another chat", () => {
  it("is not shown there", async () => {
    const { answer, end } = underWay();
    const { chat, server, posted } = chatWorld({ "daiku/chat": answer });
    const [one, two] = [chunksOf("s1"), chunksOf("s2", "r2")];
    const first = chat.send("One", []);
    await settle();
    server.stream(one("run_started", {}));
    const second = chat.send("Two", [], { ownChat: true });
    await settle();
    server.stream(two("run_started", {}));
    await settle();
    posted.length = 0;
    server.stream(one("message", { text: "Of the first" }));
    void chat.open("s2");
    await settle();
    const shown = posted.flatMap((message) => (message.type === "chunks" ? message.chunks : []));
    expect(shown.filter(({ session }) => session === "s1")).toEqual([]);
    expect(chat.current).toBe("s2");
    end("s2");
    void [first, second];
  });
});

describe("a request in a chat of its own", () => {
  const both = async () => {
    const { answer, end } = underWay();
    const world = chatWorld({ "daiku/chat": answer });
    await world.chat.open("s1");
    const elsewhere: string[] = [];
    world.chat.onAskedElsewhere((session) => elsewhere.push(session));
    const running = world.chat.send("Own", [], { ownChat: true });
    await settle();
    return { ...world, elsewhere, running, end, own: chunksOf("s9") };
  };

  it("says that it asks something while another chat is open, and shows it once it is", async () => {
    const { chat, server, elsewhere, own, end, running, streamed } = await both();
    server.stream(own("run_started", {}), own("approval_asked", { approvalId: "a1" }));
    await settle();
    expect([elsewhere, chat.waiting, chat.working, streamed()]).toEqual([["s9"], [], false, []]);
    await chat.open("s9");
    expect(chat.waiting).toMatchObject([{ approvalId: "a1" }]);
    end("s9");
    await running;
  });
});

describe("what goes wrong in a chat", () => {
  const failing = (answers: (() => Promise<never>)[]) => chatWorld({ "daiku/chat": () => answers.shift()?.() });

  it("is shown there, with what was said, and not in the chat that the person turned to", async () => {
    let fail: (error: Error) => void = () => undefined;
    const { chat, posted, server } = failing([() => new Promise((_, reject) => (fail = reject))]);
    await chat.open("s1");
    const running = chat.send("Do it", []);
    await settle();
    server.stream(chunksOf("s1")("run_started", {}));
    await chat.open("s2");
    fail(new Error("boom"));
    await running;
    expect(posted.filter(({ type }) => type === "failed")).toEqual([]);
  });

  it("gives the words back where the run never began", async () => {
    const { chat, posted } = failing([() => Promise.reject(new Error("boom"))]);
    await chat.send("Do it", []);
    expect(posted.find(({ type }) => type === "failed")).toMatchObject({ text: "Do it" });
  });
});

describe("chunks that are missing", () => {
  it("are fetched, and shown in order before what came after them", async () => {
    const say = chunksOf("s1");
    const [start, lost, late] = [say("run_started", {}), say("message", { text: "lost" }), say("notice", {})];
    const { answer } = underWay();
    const { chat, kept, server, streamed } = chatWorld({ "daiku/chat": answer });
    await chat.open("s1");
    void chat.send("Do it", []);
    await settle();
    kept.push(start, lost);
    server.stream(start, late);
    await settle(20);
    expect(streamed().map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(chat.chunks).toEqual([start, lost, late]);
  });
});

describe("chunks that come while missing ones are fetched", () => {
  it("wait for those, and are shown once each", async () => {
    const say = chunksOf("s1");
    const [start, lost, late, later] = [
      say("run_started", {}),
      say("notice", {}),
      say("notice", {}),
      say("notice", {}),
    ];
    const { answer } = underWay();
    let release: () => void = () => undefined;
    const { chat, server, streamed } = chatWorld({
      "daiku/chat": answer,
      "daiku/session/get": async ({ afterSeq }: { afterSeq?: number }) => {
        if (afterSeq !== undefined) await new Promise<void>((resolve) => (release = resolve));
        const session = { ...sessionOf("s1"), lastSeq: afterSeq === undefined ? 0 : 2 };
        return { session, chunks: afterSeq === undefined ? [] : [start, lost] };
      },
    });
    await chat.open("s1");
    void chat.send("Do it", []);
    await settle();
    server.stream(start, late);
    await settle();
    server.stream(later);
    await settle();
    expect(streamed().map(({ seq }) => seq)).toEqual([1]);
    release();
    await settle();
    expect(streamed().map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    expect(server.asked.filter(({ params }) => params.afterSeq !== undefined)).toHaveLength(1);
  });
});

describe("stopping", () => {
  it("cancels the run, or the request while no run is known", async () => {
    const { answer } = underWay();
    const { chat, server } = chatWorld({ "daiku/chat": answer, "daiku/cancel": () => ({}) });
    void chat.send("Do it", []);
    await settle();
    await chat.stop();
    expect(server.methods()).not.toContain("daiku/cancel");
    expect(server.cancelled).toBe(1);
    server.stream(chunksOf("s1")("run_started", {}));
    await chat.stop();
    expect(server.asked.at(-1)).toEqual({ method: "daiku/cancel", params: { runId: "r1" } });
  });

  it("and steering leave the runs of other chats alone", async () => {
    const { answer } = underWay();
    const { chat, server } = chatWorld({ "daiku/chat": answer });
    void chat.send("Own", [], { ownChat: true });
    await settle();
    server.stream(chunksOf("s9")("run_started", {}));
    await chat.open("s1");
    const before = server.asked.length;
    await chat.stop();
    await chat.steer("Faster");
    expect(server.asked.length).toBe(before);
    expect(server.cancelled).toBe(0);
  });
});

describe("a chat that is opened by its end", () => {
  const say = chunksOf("s1");
  const whole = [say("run_started", {}), say("edit", { checkpointId: "c1" }), say("run_started", {}, { run: "r2" })];
  const windowed = () => {
    const answer = { release: () => {} };
    const made = chatWorld({
      "daiku/session/get": async ({ beforeSeq }: { beforeSeq?: number }) => {
        const session = { ...sessionOf("s1"), lastSeq: 3 };
        const usage = { model: "", promptTokens: 0, completionTokens: 0, cachedTokens: 0 };
        if (!beforeSeq) return { session, chunks: whole.slice(2), earlier: { beforeSeq: 3, count: 2, usage } };
        await new Promise<void>((resolve) => (answer.release = resolve));
        return { session, chunks: whole.slice(0, 2) };
      },
    });
    return { ...made, answer };
  };

  it("tells the trees and keys of its older part when that has come, asked for once", async () => {
    const { chat, answer, posted, server } = windowed();
    await chat.open("s1");
    const heard: (readonly Chunk[])[] = [];
    chat.onChunks((chunks) => heard.push(chunks));
    const asking = [chat.earlier(), chat.earlier()];
    await settle();
    answer.release();
    await Promise.all(asking);
    expect(heard).toEqual([whole]);
    expect(posted.at(-1)).toMatchObject({ type: "earlier", chunks: whole.slice(0, 2) });
    expect(server.asked.filter(({ params }) => params.beforeSeq)).toHaveLength(1);
  });

  it("leaves out an older part that comes after the chat was fetched anew, or left", async () => {
    const { chat, answer, posted } = windowed();
    for (const meanwhile of [() => chat.open("s1"), async () => chat.newChat()]) {
      await chat.open("s1");
      const asking = chat.earlier();
      await settle();
      await meanwhile();
      answer.release();
      await asking;
      expect(posted.filter(({ type }) => type === "earlier")).toEqual([]);
    }
  });
});

describe("a question of a run that is not under way here", () => {
  it.each([
    [
      "an approval",
      "daiku/approve",
      (chat: Chat) => chat.approve({ runId: "r1", approvalId: "a1", decision: "allow_once" }),
    ],
    ["a question", "daiku/answer", (chat: Chat) => chat.answer("r1", "i1", "yes")],
  ] as const)("%s is seen to be answered", async (_, method, answer) => {
    const say = chunksOf("s1");
    const { chat, kept, posted } = chatWorld({
      [method]: () => {
        kept.push(say("approval_given", { approvalId: "a1", decision: "allow_once" }));
        return {};
      },
    });
    kept.push(say("run_started", {}), say("approval_asked", { approvalId: "a1" }));
    await chat.open("s1");
    posted.length = 0;
    await answer(chat);
    await settle();
    expect(posted.flatMap((message) => (message.type === "chunks" ? message.chunks : []))).toMatchObject([
      { type: "approval_given" },
    ]);
  });
});

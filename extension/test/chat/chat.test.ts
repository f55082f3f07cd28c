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

// A question that waits is seen wherever the person is: on the panel's icon, and said once where the panel is out of sight.

import { beforeEach, expect, it } from "vitest";
import { watchApprovals } from "../../src/chat/approvals";
import type { Pending } from "../../src/pure/chat/pending";
import { EventEmitter, person, reset, seen, settle } from "../editor/editor";

const one: Pending = { runId: "r1", approvalId: "a1", kind: "command", preview: "npm test\n--all" };

function world(visible: boolean) {
  const [waits, hidden, elsewhere] = [
    new EventEmitter<readonly Pending[]>(),
    new EventEmitter<void>(),
    new EventEmitter<string>(),
  ];
  const state = { visible, waiting: [] as readonly Pending[], counts: [] as number[], shown: 0, opened: "" };
  const chat = {
    onWaiting: waits.event,
    onAskedElsewhere: elsewhere.event,
    open: async (session: string) => {
      state.opened = session;
    },
    get waiting() {
      return state.waiting;
    },
  };
  const panel = {
    visible: () => state.visible,
    onHidden: hidden.event,
    count: (n: number) => void state.counts.push(n),
  };
  watchApprovals(chat, panel, async () => void state.shown++);
  const wait = (...waiting: Pending[]) => {
    state.waiting = waiting;
    waits.fire(waiting);
  };
  const leave = () => {
    state.visible = false;
    hidden.fire();
  };
  return { state, wait, leave, askElsewhere: (session: string) => elsewhere.fire(session) };
}

beforeEach(reset);

it("is said once, with the way to it, where the panel is out of sight", async () => {
  person.picks = () => "Show";
  const { state, wait } = world(false);
  wait(one);
  wait(one);
  await Promise.resolve();
  expect(seen.messages).toEqual(["Daiku wants to run: npm test"]);
  await settle();
  expect(state.shown).toBe(1);
});

it("is not said beside a panel that shows it, but as soon as the person leaves it", () => {
  const { wait, leave } = world(true);
  wait(one);
  expect(seen.messages).toEqual([]);
  leave();
  leave();
  expect(seen.messages).toHaveLength(1);
});

it("is not said after it was answered", () => {
  const { wait, leave } = world(true);
  wait(one);
  wait();
  leave();
  expect(seen.messages).toEqual([]);
});

it("stands on the panel's icon for as long as it waits", () => {
  const { state, wait } = world(true);
  wait(one);
  wait();
  expect(state.counts).toEqual([1, 0]);
});

it("of another chat is said, and leads to that chat where the person wants it", async () => {
  const { state, askElsewhere } = world(true);
  askElsewhere("s2");
  await settle();
  expect([seen.messages.length, state.opened, state.shown]).toEqual([1, "", 0]);
  person.picks = () => "Show";
  askElsewhere("s3");
  await settle();
  expect([state.opened, state.shown]).toEqual(["s3", 1]);
});

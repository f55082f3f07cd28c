import assert from "node:assert/strict";
import { test } from "node:test";
import { Counters } from "../src/counters.js";
import { Locks } from "../src/locks.js";
import { Store } from "../src/store.js";

test("a hundred at once are a hundred", async () => {
  const counters = new Counters(new Store(1));
  const seen = await Promise.all(Array.from({ length: 100 }, () => counters.add("x")));
  assert.equal(await counters.get("x"), 100);
  assert.deepEqual([...seen].sort((a, b) => a - b), Array.from({ length: 100 }, (_, n) => n + 1));
});

test("those that come while others wait are counted", async () => {
  const counters = new Counters(new Store(1));
  const all = [];
  for (let n = 0; n < 20; n++) {
    all.push(counters.add("x"), counters.add("x", 2));
    await new Promise((resolve) => setTimeout(resolve, n % 3));
  }
  await Promise.all(all);
  assert.equal(await counters.get("x"), 60);
});

test("a write that fails is told, and the next one works", async () => {
  const store = new Store(1);
  const write = store.write.bind(store);
  let broken = true;
  store.write = (...args) => (broken ? Promise.reject(new Error("disk full")) : write(...args));
  const counters = new Counters(store);
  await assert.rejects(counters.add("x"), /disk full/);
  const both = Promise.allSettled([counters.add("x"), counters.add("x")]);
  await both;
  broken = false;
  assert.equal(await counters.add("x"), 1);
});

test("other names do not wait", async () => {
  const locks = new Locks();
  let open;
  const held = locks.run("a", () => new Promise((resolve) => (open = resolve)));
  assert.equal(await locks.run("b", async () => 7), 7);
  open(1);
  assert.equal(await held, 1);
});

test("work that throws at once does not stop the others", async () => {
  const locks = new Locks();
  await assert.rejects(locks.run("a", () => { throw new Error("no"); }), /no/);
  assert.equal(await locks.run("a", async () => 3), 3);
});

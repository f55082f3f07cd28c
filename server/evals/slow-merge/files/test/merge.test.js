import assert from "node:assert/strict";
import { test } from "node:test";
import { importContacts } from "../src/csv.js";

test("contacts that share a mail are one", () => {
  assert.deepEqual(importContacts("Ann;a@x;\nBob;b@x;\nA. Ann;A@x,ann@y;1"), [
    { name: "Ann", mails: ["a@x", "ann@y"], phones: ["1"] },
    { name: "Bob", mails: ["b@x"], phones: [] },
  ]);
});

test("by way of a third", () => {
  assert.deepEqual(importContacts("A;a@x;1\nB;b@x;2\nC;;2,1"), [{ name: "A", mails: ["a@x", "b@x"], phones: ["1", "2"] }]);
});

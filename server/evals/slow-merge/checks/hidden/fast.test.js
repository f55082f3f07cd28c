import assert from "node:assert/strict";
import { test } from "node:test";
import { mergeContacts } from "../src/merge.js";
import { mailKey, phoneKey } from "../src/same.js";

function slow(contacts) {
  const share = (a, b, key) => a.some((x) => b.some((y) => key(x) === key(y)));
  const groups = contacts.map((c, at) => ({ at, from: [c] }));
  for (let again = true; again; ) {
    again = false;
    for (let i = 0; i < groups.length && !again; i++)
      for (let j = i + 1; j < groups.length && !again; j++)
        if (groups[i].from.some((a) => groups[j].from.some((b) => share(a.mails, b.mails, mailKey) || share(a.phones, b.phones, phoneKey)))) {
          groups[i].from.push(...groups.splice(j, 1)[0].from);
          again = true;
        }
  }
  return groups.map(({ at, from }) => {
    const found = { name: contacts[at].name, mails: [], phones: [] };
    const add = (to, each, key) => to.some((known) => key(known) === key(each)) || to.push(each);
    for (const c of contacts.filter((c) => from.includes(c))) {
      c.mails.forEach((m) => add(found.mails, m, mailKey));
      c.phones.forEach((p) => add(found.phones, p, phoneKey));
    }
    return found;
  });
}

let seed = 7;
const next = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;

test("the same as before, for many small inputs", () => {
  for (let round = 0; round < 300; round++) {
    const contacts = Array.from({ length: next(9) }, (_, n) => ({
      name: `n${n}`,
      mails: Array.from({ length: next(3) }, () => (next(2) ? "M" : "m") + next(7)),
      phones: Array.from({ length: next(3) }, () => (next(2) ? "00" : "+") + next(7)),
    }));
    const before = JSON.stringify(contacts);
    assert.deepEqual(mergeContacts(contacts), slow(contacts));
    assert.equal(JSON.stringify(contacts), before);
  }
});

test("a hundred and twenty thousand within five seconds, chains and large groups included", () => {
  const contacts = Array.from({ length: 120_000 }, (_, n) => ({
    name: `n${n}`,
    mails: [`m${n}@x`, `M${n - (n % 3)}@x`],
    phones: n < 40_000 ? [`${n}`, `${n + 1}`] : n < 60_000 ? ["999999999"] : [],
  }));
  const began = performance.now();
  const found = mergeContacts(contacts);
  const took = performance.now() - began;
  assert.equal(found.length, 20_001);
  assert.ok(took < 5000, `${Math.round(took)} ms`);
});

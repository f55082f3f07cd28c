import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

const files = ["packages", "docs"]
  .flatMap((top) => readdirSync(top, { recursive: true }).map((name) => path.join(top, name)))
  .filter((name) => /\.(js|md)$/.test(name));

test("the old name is nowhere but in what translates the stored templates", () => {
  const left = files.filter((name) => /\bformatMoney\b/.test(readFileSync(name, "utf8")));
  assert.deepEqual(left.filter((name) => !name.startsWith(path.join("packages", "report", "src"))), []);
});

test("the new name is there, the old one is not", async () => {
  const money = await import("../packages/money/src/index.js");
  assert.equal(money.formatAmount(1234), "12.34 EUR");
  assert.equal(money.formatMoney, undefined);
  assert.equal(money.formatMoneyRange(1, 2, "USD"), "0.01 USD to 0.02 USD");
});

test("stored templates work", async () => {
  const { fill } = await import("../packages/report/src/index.js");
  assert.equal(fill("sum", [500]), "In all 5.00 EUR");
});

test("the docs are up to date", () => {
  assert.match(readFileSync("docs/money.md", "utf8"), /formatAmount\(cents\).*formatMoneyRange/s);
});

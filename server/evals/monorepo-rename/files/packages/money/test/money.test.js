import assert from "node:assert/strict";
import { test } from "node:test";
import * as money from "../src/index.js";

test("amounts", () => {
  assert.equal(money.formatMoney(1234), "12.34 EUR");
  assert.equal(money.formatMoneyRange(100, 250), "1.00 EUR to 2.50 EUR");
  assert.equal(money.parseMoney(money.formatMoney(-5)), -5);
});

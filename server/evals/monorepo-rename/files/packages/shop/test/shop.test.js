import assert from "node:assert/strict";
import { test } from "node:test";
import { priceLine } from "../src/index.js";

test("price lines", () => {
  assert.equal(priceLine({ name: "Tea", price: 350 }), "Tea: 3.50 EUR");
  assert.equal(priceLine({ name: "Cake", price: 350, upTo: 500 }), "Cake: 3.50 EUR to 5.00 EUR");
});

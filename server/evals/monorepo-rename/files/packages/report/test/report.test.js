import assert from "node:assert/strict";
import { test } from "node:test";
import { fill } from "../src/index.js";

test("templates are filled in", () => {
  assert.equal(fill("sum", [500]), "In all 5.00 EUR");
  assert.equal(fill("span", [500, 700]), "Between 5.00 EUR to 7.00 EUR");
});

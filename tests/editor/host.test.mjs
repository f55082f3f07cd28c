// Daiku inside the real extension host: each Mocha test of tests/editor/host is one test here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { runHostTests } from "./lab/host.mjs";

test("in the extension host", { timeout: 460_000 }, async (t) => {
  const { code, tests, said } = await runHostTests();
  for (const { title, error } of tests) {
    await t.test(title, () => {
      if (error) throw new Error(error);
    });
  }
  assert.ok(tests.length > 0, `no test ran (${code}):\n${said.slice(-40).join("\n")}`);
  assert.equal(code, 0, said.slice(-40).join("\n"));
});

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const words = (args, input = "") => spawnSync(process.execPath, ["bin/words.js", ...args], { input, encoding: "utf8" });

test("the most frequent word comes first", () => {
  assert.equal(words([], "b a b c A b").stdout, "3\tb\n2\ta\n1\tc\n");
});

test("a missing file is told", () => {
  const done = words(["no-such-file"]);
  assert.equal(done.status, 1);
  assert.match(done.stderr, /no-such-file/);
});

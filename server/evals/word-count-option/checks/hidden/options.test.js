import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";

const words = (args, input = "b a b c A b") =>
  spawnSync(process.execPath, ["bin/words.js", ...args], { input, encoding: "utf8" });
const folder = mkdtempSync(path.join(tmpdir(), "words-"));
const file = path.join(folder, "x.txt");
const odd = path.join(folder, "--top");
writeFileSync(file, "z z y");
writeFileSync(odd, "q");

test("top", () => {
  assert.equal(words(["--top", "2"]).stdout, "3\tb\n2\ta\n");
  assert.equal(words(["--top=1"]).stdout, "3\tb\n");
  assert.equal(words(["--top", "99"]).stdout, "3\tb\n2\ta\n1\tc\n");
});
test("sort", () => {
  assert.equal(words(["--sort", "alpha"]).stdout, "2\ta\n3\tb\n1\tc\n");
  assert.equal(words(["--sort=count"]).stdout, "3\tb\n2\ta\n1\tc\n");
  assert.equal(words(["--sort=alpha", "--top=2"]).stdout, "2\ta\n3\tb\n");
});
test("before and after files", () => {
  assert.equal(words(["--top", "1", file]).stdout, "2\tz\n");
  assert.equal(words([file, "--top", "1"]).stdout, "2\tz\n");
});
test("two dashes end the options", () => {
  const done = spawnSync(process.execPath, [path.resolve("bin/words.js"), "--", "--top"], { cwd: folder, encoding: "utf8" });
  assert.equal(done.stdout, "1\tq\n", done.stderr);
});
for (const args of [["--top"], ["--top", "0"], ["--top", "1.5"], ["--top=x"], ["--top="], ["--sort"], ["--sort", "size"], ["--size", "3"]]) {
  test(`wrong: ${args.join(" ")}`, () => {
    const done = words(args);
    assert.equal(done.status, 2);
    assert.match(done.stderr, /^[^\n]+\n$/);
    assert.equal(done.stdout, "");
  });
}
test("help names them", () => {
  const { stdout } = words(["--help"]);
  assert.match(stdout, /--top/);
  assert.match(stdout, /--sort/);
});

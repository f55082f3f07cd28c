// Markdown in blocks, terminal text, unified diffs, settings, numbers and the faces of tools.

import { describe, expect, it } from "vitest";
import { counts, formerText, parseDiff } from "../../src/pure/diff/diff";
import { toSettingsTree, withKeys } from "../../src/pure/server/settings";
import { plainText, showControls, showOutput } from "../../src/pure/text/ansi";
import { advance, type Blocks, hasDefinitions, NO_BLOCKS } from "../../src/pure/text/blocks";
import { dollars, duration, tokens } from "../../src/pure/text/format";
import { toolFace } from "../../src/pure/view/toolFace";

describe("markdown in blocks", () => {
  const TEXT =
    "# Head\n\nOne *para*\nof two lines.\n\n- a\n- b\n\n  more\n\n```py\nx = 1\n\ny = 2\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd";

  it("loses nothing, however it is cut", () => {
    for (const size of [1, 3, 7, 1000]) {
      let blocks: Blocks = NO_BLOCKS;
      for (let at = size; at - size < TEXT.length; at += size) blocks = advance(blocks, TEXT.slice(0, at));
      expect(blocks.done.join("") + TEXT.slice(blocks.from)).toBe(TEXT);
      expect(blocks.done.length).toBe(5);
    }
  });

  it("keeps finished blocks as they are while the text grows", () => {
    const first = advance(NO_BLOCKS, "One\n\nTwo\n\nThr");
    const second = advance(first, "One\n\nTwo\n\nThree and more");
    expect(second.done).toEqual(first.done);
    expect(second.done).toEqual(["One\n\n", "Two\n\n"]);
  });

  it("does not end a fence at an empty line", () => {
    const blocks = advance(NO_BLOCKS, "Hi\n\n```js\na\n\nb\n");
    expect(blocks.done).toEqual(["Hi\n\n"]);
  });

  it("starts over with another text", () => {
    expect(advance(advance(NO_BLOCKS, "a\n\nb"), "c").done).toEqual([]);
  });

  it("knows a link definition", () => {
    expect(hasDefinitions("see [a]\n\n[a]: https://example.org")).toBe(true);
    expect(hasDefinitions("arr[i]: x")).toBe(false);
  });
});

describe("terminal text", () => {
  it("has no escape sequence left: colours, cursor, links, clipboard, titles", () => {
    const text =
      "\u001b[31mred\u001b[0m \u001b]8;;http://x/\u0007link\u001b]8;;\u0007 \u001b]52;c;aGk=\u0007clip \u001b]0;title\u001b\\t \u001b[2K\u001b[1Aup\u001bM";
    expect(plainText(text)).toBe("red link clip t up");
  });

  it("shows an overwritten line as a terminal would leave it", () => {
    expect(plainText("10%\r50%\r100%\ndone\r\n")).toBe("100%\ndone\n");
  });

  it("keeps tabs, line ends and every script", () => {
    expect(plainText("a\tb\n大工 ✓ é")).toBe("a\tb\n大工 ✓ é");
  });

  it("to be allowed shows what is hidden in it", () => {
    expect(showControls("ls\u001b[2K\rrm -rf /")).toBe("ls␛[2K␍rm -rf /");
    expect(showControls("a\u202eb\u200bc")).toBe("a‹U+202E›b‹U+200B›c");
    expect(showControls("a\u0000b\u007f")).toBe("a␀b␡");
    expect(showControls("plain\ntext\t大工")).toBe("plain\ntext\t大工");
  });

  it.each([
    ["direction", "a\u202eb\u2066c\u2069\u200e\u200f\u061c", "a‹U+202E›b‹U+2066›c‹U+2069›‹U+200E›‹U+200F›‹U+061C›"],
    ["zero width", "a\u200bb\u2060\ufeff", "a‹U+200B›b‹U+2060›‹U+FEFF›"],
    ["tags", "a\u{e0041}\u{1f3f4}\u{e0067}", "a‹U+E0041›\u{1f3f4}‹U+E0067›"],
    ["joiners between ASCII letters", "ad\u200dmin\u200c", "ad‹U+200D›min‹U+200C›"],
    ["a joiner before a blank", "日\u200d\u3164", "日‹U+200D›‹U+3164›"],
    ["selectors that select nothing", "a\ufe01b葛\u{e0100}\u{e0101}", "a‹U+FE01›b葛\u{e0100}‹U+E0101›"],
    ["colors and overwritten lines", "\u001b[31m1%\r2%\u202e\u001b[0m", "2%‹U+202E›"],
  ])("escapes hidden characters in output: %s", (_, text, shown) => expect(showOutput(text)).toBe(shown));

  it.each([
    "👩\u200d💻 👩🏽\u200d💻 🏳\ufe0f\u200d🌈 👨\u200d👩\u200d👧\u200d👦 🤦🏽\u200d♂\ufe0f",
    "❤\ufe0f 1\ufe0f\u20e3 #\ufe0f\u20e3 ℹ\ufe0f ‼\ufe0f",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "می\u200cخواهم שלום ක්\u200dෂ",
    "葛\u{e0100} 邉\u{e0101}",
  ])("keeps characters that a script or an emoji needs in output: %s", (text) => expect(showOutput(text)).toBe(text));
});

const DIFF = `--- a/shop/cart.py
+++ b/shop/cart.py
@@ -1,4 +1,5 @@
 def total(items):
-    return 0
+    # all of them
+    return sum(items)
 
 end = 1
@@ -10,2 +11,1 @@ def other():
 keep
-drop
`;

describe("a unified diff", () => {
  it("is read with its line numbers", () => {
    const [file] = parseDiff(DIFF);
    expect(file).toMatchObject({ oldPath: "shop/cart.py", newPath: "shop/cart.py" });
    expect(file?.hunks[0]?.lines.map((line) => [line.kind, line.old, line.new])).toEqual([
      ["same", 1, 1],
      ["del", 2, undefined],
      ["add", undefined, 2],
      ["add", undefined, 3],
      ["same", 3, 4],
      ["same", 4, 5],
    ]);
    expect(file && counts(file)).toEqual({ added: 2, removed: 2 });
  });

  it("gives back the former text", () => {
    const before = "def total(items):\n    return 0\n\nend = 1\n5\n6\n7\n8\n9\nkeep\ndrop\n";
    const after = "def total(items):\n    # all of them\n    return sum(items)\n\nend = 1\n5\n6\n7\n8\n9\nkeep\n";
    const [file] = parseDiff(DIFF);
    expect(file && formerText(after, file)).toBe(before);
    expect(file && formerText(after.replaceAll("\n", "\r\n"), file)).toBe(before.replaceAll("\n", "\r\n"));
  });

  it("that does not fit any more gives none", () => {
    const [file] = parseDiff(DIFF);
    expect(file && formerText("something else\n", file)).toBeUndefined();
  });

  it("of a new file gives the empty text, of a deleted one all of it", () => {
    const [made] = parseDiff("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+a\n+b\n");
    expect(made?.oldPath).toBeUndefined();
    expect(made && formerText("a\nb\n", made)).toBe("");
    const [gone] = parseDiff("--- a/old.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n");
    expect(gone && formerText("", gone)).toBe("a\nb\n");
  });

  it("keeps a missing last line end", () => {
    const [file] = parseDiff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n");
    expect(file && formerText("b\n", file)).toBe("a");
  });

  it("takes lines that look like headers for what they are", () => {
    const [file, ...rest] = parseDiff(
      "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+-- new comment\n keep\n",
    );
    expect(rest).toEqual([]);
    expect(file?.hunks[0]?.lines.map((line) => line.text)).toEqual(["-- old comment", "-- new comment", "keep"]);
  });

  it("is no diff when the text is none", () => {
    expect(parseDiff("hello\nworld")).toEqual([]);
  });
});

describe("settings", () => {
  it("take the shape of the server's file", () => {
    const flat = {
      "llm.provider": "openai",
      "llm.openai.baseUrl": "http://x",
      "approvals.commandsAllow": ["ls"],
      "limits.maxCost": 1,
      "server.command": ["x"],
      "llm.model": undefined,
    };
    expect(toSettingsTree(flat)).toEqual({
      llm: { provider: "openai", openai: { base_url: "http://x" } },
      approvals: { commands_allow: ["ls"] },
      limits: { max_cost: 1 },
    });
  });

  it("get the keys beside what is there", () => {
    const settings = toSettingsTree({ "llm.openai.baseUrl": "http://x" });
    expect(withKeys(settings, { openai: "k", gemini: "" })).toEqual({
      llm: { openai: { base_url: "http://x", api_key: "k" } },
    });
    expect(settings).toEqual({ llm: { openai: { base_url: "http://x" } } });
    expect(withKeys({}, {})).toEqual({});
  });
});

describe("numbers", () => {
  it.each([
    [0, "0"],
    [999, "999"],
    [1000, "1k"],
    [1250, "1.3k"],
    [34_200, "34k"],
    [999_900, "1M"],
    [2_500_000, "2.5M"],
  ])("%d tokens are %s", (count, text) => expect(tokens(count)).toBe(text));
  it.each([
    [0, "$0"],
    [0.00001, "<$0.0001"],
    [0.0012, "$0.0012"],
    [0.034, "$0.034"],
    [1.2, "$1.20"],
  ])("%d dollars are %s", (cost, text) => expect(dollars(cost)).toBe(text));
  it.each([
    [80, "80 ms"],
    [1400, "1.4 s"],
    [12_300, "12 s"],
    [185_000, "3 min 05 s"],
  ])("%d ms are %s", (ms, text) => expect(duration(ms)).toBe(text));
});

describe("a tool's face", () => {
  it("says what is done to what", () => {
    expect(toolFace("files/read", { path: "a/b.py", start_line: 3, end_line: 9 })).toMatchObject({
      ...{ title: "Read", subject: "a/b.py:3–9" },
    });
    expect(toolFace("shell/run", { command: "npm test" }).subject).toBe("npm test");
    expect(toolFace("shell/run", { command: "rm \u202ex" }).subject).toBe("rm ‹U+202E›x");
    expect(toolFace("mcp/x", { name: "a\u{e0041}\u00ad" }).subject).toBe("a‹U+E0041›‹U+00AD›");
    expect(toolFace("files/patch", { patch: "--- a/x\n+++ b/x\n@@\n*** Update File: y\n" }).subject).toBe("x, y");
  });

  it.each([
    ["files/list", {}, "."],
    ["files/list", { glob: "*.py" }, "*.py"],
    ["files/move", { path: "a", to: "b" }, "a → b"],
    ["search/text", { pattern: "x" }, "x"],
    ["search/text", { pattern: "x", path: "src" }, "x · src"],
    ["git/diff", { ref: "main" }, "main"],
    ["web/research", { queries: ["one", "two"] }, "one, two"],
    ["agent/parallel", { requests: [{ agent: "coder" }, { agent: "runner" }] }, "coder, runner"],
    ["git/status", { path: "a" }, ""],
    ["shell/run", { command: "echo {path} $& [x]", path: "no" }, "echo {path} $& [x]"],
  ])("of %s with %j says %s", (tool, args, subject) => expect(toolFace(tool, args).subject).toBe(subject));

  it("of a stranger is its name and a telling argument", () => {
    expect(toolFace("github/get_issue", { body: "long long text", id: "42" })).toMatchObject({
      title: "github/get_issue",
      subject: "42",
    });
  });
});

// @vitest-environment jsdom
// Markdown from strangers: nothing is fetched or run, and links lead only where they say.

import { describe, expect, it } from "vitest";
import { render } from "../../webview/text/sanitize";

const dom = (markdown: string): HTMLElement => {
  const box = document.createElement("div");
  box.innerHTML = render(markdown);
  return box;
};

describe("markdown of a stranger", () => {
  it("fetches nothing: images are only named", () => {
    const box = dom("![secret](http://127.0.0.1:1/?d=SECRET) and ![](https://x/a.png 't')");
    expect(box.querySelector("img, picture, video, audio, iframe, object, embed, link")).toBeNull();
    expect(box.innerHTML).not.toMatch(/src=|SECRET/);
    expect(box.textContent).toContain("secret");
  });

  it.each([
    "[click](command:workbench.action.terminal.new)",
    "[click](vscode:extension/x)",
    "[click](vscode-insiders://x)",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](file:///etc/passwd)",
    "[click](vbscript:x)",
    "[a]\n\n[a]: command:x",
    "<command:workbench.action.x>",
    "[click](&#106;avascript:alert(1))",
  ])("is no link: %s", (markdown) => {
    for (const link of dom(markdown).querySelectorAll("a")) {
      expect(link.getAttribute("href")).toBe("#");
      expect(link.getAttribute("data-path") ?? "").not.toContain(":");
    }
    expect(dom(markdown).innerHTML).not.toMatch(/href="(?!#|https?:|mailto:)/i);
  });

  it.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><foreignObject></svg>",
    "<style>*{background:url(http://x)}</style>",
    "<iframe src=http://x></iframe>",
    "<a href='javascript:alert(1)' onclick='x()'>y</a>",
    "<details open ontoggle=alert(1)>",
    "<form action=http://x><input name=a></form>",
    "<b style='background:url(http://x)'>z</b>",
    "```<img src=x onerror=1>\ncode\n```",
    "`<img src=x onerror=alert(1)>`",
    "| <img src=x onerror=alert(1)> |\n|---|\n| x |",
    '[x](https://a.example/"onmouseover="alert(1))',
  ])("is text, not markup: %s", (markdown) => {
    const box = dom(markdown);
    expect(box.querySelector("script, img, svg, style, iframe, form, input, details, b, meta, base")).toBeNull();
    for (const element of box.querySelectorAll("*")) {
      for (const { name } of element.attributes) expect(name).not.toMatch(/^on|^style$/i);
    }
  });

  it("links to the web, with the address to be seen", () => {
    const link = dom("[docs](https://example.org/a?b=1) https://example.org/c").querySelectorAll("a");
    expect([...link].map((a) => [a.getAttribute("href"), a.getAttribute("title")])).toEqual([
      ["https://example.org/a?b=1", "https://example.org/a?b=1"],
      ["https://example.org/c", "https://example.org/c"],
    ]);
  });

  it("opens files of the workspace, also from code", () => {
    const links = dom("[cart](shop/cart.py#L12), `shop/cart.py:3`, `a.total()`, `README.md`").querySelectorAll("a");
    expect([...links].map((a) => [a.getAttribute("data-path"), a.getAttribute("data-line")])).toEqual([
      ["shop/cart.py", "12"],
      ["shop/cart.py", "3"],
      ["README.md", null],
    ]);
  });

  it("colours code whose language is known, and only escapes the rest", () => {
    expect(dom("```python\ndef f(): pass\n```").querySelector(".hljs-keyword")?.textContent).toBe("def");
    expect(dom("```nonsense\n<b>&\n```").querySelector("pre")?.textContent).toBe("<b>&\n");
  });

  it("has tables that can be scrolled and aligned without styles", () => {
    const box = dom("| a | b |\n|:-:|--:|\n| 1 | 2 |");
    expect([...box.querySelectorAll("th")].map((cell) => cell.className)).toEqual(["align-center", "align-right"]);
    expect(box.querySelector(".table > table")).not.toBeNull();
  });

  it("has boxes for tasks, told apart for eyes and ears, and leaves other brackets alone", () => {
    const box = dom("- [x] **made**\n- [ ] to do\n- [link](https://example.org)\n- [a] b\n- [x]y\n\n[x] no list\n");
    const marks = [...box.querySelectorAll("li")].map((li) => [
      li.className,
      li.querySelector(".codicon")?.getAttribute("aria-label") ?? "",
      li.textContent?.trim(),
    ]);
    expect(marks).toEqual([
      ["task done", "done", "made"],
      ["task", "not done", "to do"],
      ["", "", "link"],
      ["", "", "[a] b"],
      ["", "", "[x]y"],
    ]);
    expect(box.querySelector("p:last-child")?.textContent).toBe("[x] no list");
  });

  it("cannot be made to hang by deep or long nesting", () => {
    const start = performance.now();
    for (const nasty of [
      "*".repeat(5000),
      "[".repeat(5000),
      ">".repeat(2000),
      "`".repeat(5001),
      "- ".repeat(1000),
      `${"a|".repeat(3000)}\n${"-|".repeat(3000)}`,
    ])
      render(nasty);
    expect(performance.now() - start).toBeLessThan(5000);
  });
});

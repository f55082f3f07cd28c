// The doctor's page: everything that was found is said, with a button for what can be mended, and nothing gets out.

import { beforeEach, describe, expect, it } from "vitest";
import type { DoctorFinding } from "../../src/contract.gen";
import { doctorPage, doctorText } from "../../src/pure/server/doctorPage";
import { showDoctor } from "../../src/server/doctor";
import { reset, seen, webviews, workspace } from "../editor/editor";
import { serverOf } from "../lab/server";

const finding = (over: Partial<DoctorFinding>): DoctorFinding => ({
  ...{ area: "daiku", state: "good", what: "Something", mend: "", command: "" },
  ...over,
});

const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

async function world(answer: () => unknown, phase: "ready" | "failed" = "ready") {
  const server = serverOf({ "daiku/doctor": answer });
  if (phase === "failed") server.client = () => Promise.reject(new Error("spawn ENOENT"));
  await showDoctor(server);
  const page = webviews.at(-1);
  if (!page) throw new Error("no page was opened");
  const press = async (message: object) => {
    page.press(message);
    await settled();
  };
  return { page, press, server };
}

beforeEach(() => {
  reset();
  for (const one of webviews.splice(0)) one.close();
});

describe("the doctor's page", () => {
  const found = [
    finding({ what: "Python 3.11 (/opt/python)" }),
    finding({
      area: "programs",
      state: "note",
      what: "rg is not installed",
      mend: "Install it",
      command: "apt install rg",
    }),
    finding({ area: "sandbox", state: "bad", what: "Sandbox: none", mend: "Install bubblewrap", action: "settings" }),
    finding({ area: "models", state: "note", what: "openai: no key", mend: "Set one", action: "key" }),
    finding({ area: "mcp", state: "note", what: "MCP server wild: down", action: "log" }),
  ];

  it("says all that the server found, what to do, and how much is to be mended", async () => {
    const { page } = await world(() => ({ findings: found }));
    for (const { what, mend } of found) {
      expect(page.html).toContain(what);
      expect(page.html).toContain(mend);
    }
    expect(page.html).toContain("Problems: 1");
    expect(page.html).toContain("VS Code");
  });

  it("has a button for each thing that can be mended", async () => {
    const { press, page } = await world(() => ({ findings: found }));
    for (const [act, command] of [
      ["settings", "daiku.openSettings"],
      ["key", "daiku.setApiKey"],
      ["log", "daiku.showLog"],
    ]) {
      expect(page.html).toContain(`data-act="${act}"`);
      await press({ act });
      expect(seen.commands.at(-1)?.name).toBe(command);
    }
  });

  it("puts a command into a terminal without running it, and only one that it shows", async () => {
    const { press } = await world(() => ({ findings: found }));
    await press({ command: "rm -rf ~" });
    expect(seen.terminals).toEqual([]);
    await press({ command: "apt install rg" });
    expect(seen.terminals).toEqual([{ text: "apt install rg", run: false }]);
  });

  it("says why the server cannot be asked, and can restart it", async () => {
    const { page, press, server } = await world(() => ({ findings: [] }), "failed");
    expect(page.html).toContain("An unexpected error occurred.");
    expect(page.html).not.toContain("ENOENT");
    server.client = async () => server.running() as never;
    await press({ act: "restart" });
    expect(seen.commands.map(({ name }) => name)).toContain("daiku.restartServer");
    expect(page.html).toContain("No problems found.");
  });

  it("says that the workspace is not trusted, with the way to trust it", async () => {
    workspace.isTrusted = false;
    const { page } = await world(() => ({ findings: [] }));
    expect(page.html).toContain('data-act="trust"');
  });

  it("looks again in the page that is open", async () => {
    let n = 0;
    const { press, page } = await world(() => ({ findings: [finding({ what: `look ${++n}` })] }));
    await press({ act: "look" });
    expect([webviews.length, page.html.includes("look 2")]).toEqual([1, true]);
  });
});

describe("what is found", () => {
  /** Any word of the page is its own name. */
  const own = new Proxy({}, { get: (_, name) => String(name) });
  const words = { ...{ title: "T", summary: "S", terminal: "In" }, areas: own, states: own, acts: own } as never;
  const nasty = `<img src=x onerror=alert(1)>"'&amp;</script><script>`;

  it("is text in the page, whatever it holds", () => {
    const all = [finding({ what: nasty, mend: nasty, command: nasty, area: "mcp" })];
    const html = doctorPage({ words, findings: all, language: nasty, nonce: "n" });
    expect(html).not.toContain("<img");
    expect(html.match(/<script/g)).toHaveLength(1);
    expect(html).toContain("default-src 'none'");
  });

  it("can be copied as plain text", () => {
    expect(doctorText({ words, findings: [finding({ state: "bad", what: "No git", mend: "Install it" })] })).toBe(
      "T\n✗ No git\n    Install it\nS\n",
    );
  });
});

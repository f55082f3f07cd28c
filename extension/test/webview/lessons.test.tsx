// @vitest-environment jsdom
// The lessons of the playbook that a run was told and used, as the panel shows them.

import { describe, expect, it } from "vitest";
import { session as chunksOf } from "../lab/chunks";
import { click, drawPanel, find, root, show } from "../lab/panel";

drawPanel();

const CHECK = { id: "batc-00001", version: 1, text: "Run make check <b>first</b>." };
const TABS = { id: "mypc-00004", version: 2, text: "Use tabs." };
const texts = (selector: string) => [...root.querySelectorAll(selector)].map((one) => one.textContent?.trim());

describe("lessons in a run", () => {
  it("are counted at its start, and at its end by how many it used; their texts are shown on demand", async () => {
    const say = chunksOf();
    const first = [say("run_started", { lessons: [CHECK, TABS] })];
    await show(first);
    expect(texts(".lessons .thought-head")).toEqual(["2 lessons from the playbook"]);
    expect(texts(".lessons li")).toEqual([]);
    await click(find(".lessons .thought-head"));
    expect(texts(".lessons li")).toEqual([`${CHECK.id} ${CHECK.text}`, `${TABS.id} ${TABS.text}`]);
    await show([...first, say("message", { text: "Done." }), say("run_finished", { usedBullets: [TABS.id] })], false);
    expect(texts(".lessons .thought-head")).toEqual(["2 lessons from the playbook · used 1 lesson"]);
    if (!root.querySelector(".lessons li")) await click(find(".lessons .thought-head"));
    expect(root.querySelectorAll('.lessons li [aria-label="used"]')).toHaveLength(1);
    expect(find(".lessons li:nth-child(2) [aria-label=used]")).toBeTruthy();
  });

  it("are not spoken of where there are none", async () => {
    const say = chunksOf();
    await show([say("run_started", {}), say("run_finished", {})], false);
    expect(root.querySelector(".lessons")).toBeNull();
  });

  it("that only nested runs were told are shown at the end as used", async () => {
    const say = chunksOf();
    const chunks = [
      say("run_started", {}),
      { ...say("run_started", { lessons: [CHECK] }), run: "nested", parent: "r1" },
      say("run_finished", { usedBullets: [CHECK.id] }),
    ];
    await show(chunks as never, false);
    expect(texts(".lessons .thought-head").at(-1)).toBe("1 lesson from the playbook · used 1 lesson");
  });
});

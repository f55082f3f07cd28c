// A progress indicator while nothing else on the screen moves; during a long silence it says what is awaited.

import { useEffect, useMemo, useState } from "preact/hooks";
import { duration } from "../../src/pure/text/format";
import type { Item } from "../../src/pure/view/items";
import { toolFace } from "../../src/pure/view/toolFace";
import type { View } from "../../src/pure/view/view";
import { t } from "../base/words";

/** After this long without a sign of life the panel says what it waits for. */
const SILENT_MS = 5000;

export function Busy({ view }: { view: View }) {
  const last = view.items.at(-1);
  const [now, setNow] = useState(Date.now());
  const since = useMemo(() => Date.now(), [view.items]);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const ms = Math.max(0, now - since);
  const words = last && isMoving(last) ? (ms >= SILENT_MS ? waitingFor(last) : "") : t("Working");
  if (!words) return null;
  return (
    <p class="busy">
      <span class="shimmer">{words}</span>
      {ms >= SILENT_MS && <span class="dim">{duration(ms)}</span>}
    </p>
  );
}

/** For what the silence is, where something is under way. */
function waitingFor(item: Item): string {
  if (item.kind === "text" || item.kind === "thinking") return t("Waiting for the model");
  if (item.kind === "tool") return t("Waiting for: {0}", t(toolFace(item.tool, item.args).title));
  return "";
}

/** The item itself shows that something goes on, or that the person is waited for. */
function isMoving(item: Item): boolean {
  if (item.kind === "text" || item.kind === "thinking") return !item.done;
  if (item.kind === "tool") return item.status === "running";
  return item.kind === "approval" || item.kind === "question" ? true : item.kind === "end";
}

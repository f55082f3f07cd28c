// Tells a screen reader what has happened, in whole sentences rather than letter by letter.

import { useRef } from "preact/hooks";
import type { ApprovalItem, Item } from "../../src/pure/view/items";
import { toolFace } from "../../src/pure/view/toolFace";
import { t } from "../base/words";
import { restoredWords } from "../items/Decisions";
import { endWords } from "../items/Ends";

export function Announcer({ items, working }: { items: readonly Item[]; working: boolean }) {
  const former = useRef<string>("");
  const words = wordsFor(items.at(-1), working) ?? former.current;
  former.current = words;
  return (
    <div class="hidden-words" role="status" aria-live="polite">
      {words}
    </div>
  );
}

/** `undefined`: nothing new to say. */
function wordsFor(last: Item | undefined, working: boolean): string | undefined {
  if (last?.kind === "text" && last.done) return last.text.slice(0, 500);
  if (last?.kind === "approval" && !last.decision) return t("Daiku needs your approval: {0}", spokenAsk(last.ask));
  if (last?.kind === "question" && last.answer === undefined) return last.ask.question;
  if (last?.kind === "restored") return restoredWords(last.restored.files.length, last.back);
  if (last?.kind === "error") return last.error.message;
  if (last?.kind === "end" && !working) return endWords(last.status) || t("Daiku has finished.");
  return undefined;
}

/** A command word for word, anything else by what it is about: nobody wants a diff read out unasked. */
function spokenAsk(ask: ApprovalItem["ask"]): string {
  if (ask.kind === "command") return ask.preview.slice(0, 200);
  const face = toolFace(ask.tool, ask.args);
  return `${t(face.title)} ${face.subject}`;
}

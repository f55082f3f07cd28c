// What `@` points at: the words after it, the list of what fits them, the keys that choose from it.

import { useEffect, useState } from "preact/hooks";
import type { Attachment } from "../../src/pure/chat/panel";
import { post } from "../base/api";
import { Icon } from "../base/parts";
import { t } from "../base/words";

export interface Candidates {
  query: string;
  list: readonly Attachment[];
}

/** The `@` before the caret, with what fits the words after it. */
export function useMention(candidates: Candidates, onTake: (attachment: Attachment, from: number, to: number) => void) {
  const [mention, setMention] = useState<{ from: number; query: string }>();
  const [at, setAt] = useState(0);
  const list = mention && candidates.query === mention.query ? candidates.list : [];
  const close = () => setMention(undefined);
  const take = (attachment: Attachment) => {
    if (mention) onTake(attachment, mention.from, mention.from + mention.query.length + 1);
    close();
  };
  return {
    ...{ open: mention !== undefined, list, at, close, take },
    /** The list is there, and its keys are meant for it. */
    takesKeys: mention !== undefined && list.length > 0,
    searching: mention !== undefined && candidates.query !== mention.query,
    /** Looks for an `@` before the caret, and asks for what fits. */
    seek: (value: string, caret: number) => {
      const found = /(?:^|\s)@(\S*)$/.exec(value.slice(0, caret));
      if (!found) return close();
      const query = found[1] ?? "";
      setMention({ from: caret - query.length - 1, query });
      setAt(0);
      post({ type: "candidates", query });
    },
    /** Answers whether the key was for the list. */
    onKey: (key: string): boolean => {
      const step = { ArrowDown: 1, ArrowUp: list.length - 1 }[key];
      const chosen = list[at];
      if (step !== undefined) setAt((at + step) % list.length);
      else if ((key === "Enter" || key === "Tab") && chosen) take(chosen);
      else if (key === "Escape") close();
      else return false;
      return true;
    },
  };
}

export type Mention = ReturnType<typeof useMention>;

interface Props {
  list: readonly Attachment[];
  at: number;
  searching: boolean;
  onTake: (attachment: Attachment) => void;
}

export function Suggestions({ list, at, searching, onTake }: Props) {
  useEffect(() => document.getElementById(`suggestion-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  return (
    <div id="suggestions" class="popup suggestions" role="listbox" aria-label={t("Add Context")}>
      {list.map((candidate, i) => (
        <div
          id={`suggestion-${i}`}
          key={JSON.stringify(candidate.item)}
          class={`option${i === at ? " active" : ""}`}
          role="option"
          tabIndex={-1}
          aria-selected={i === at}
          onMouseDown={(event) => {
            event.preventDefault();
            onTake(candidate);
          }}
        >
          <Icon name={candidate.icon} />
          <span class="name">{candidate.label}</span>
          {candidate.detail && <span class="folder">{candidate.detail}</span>}
        </div>
      ))}
      {list.length === 0 && <div class="option none">{searching ? t("Searching…") : t("No results found")}</div>}
    </div>
  );
}

// What a model said: an answer, a thought, the summary of older messages.

import { useState } from "preact/hooks";
import type { Pruned as Shortened, Compacted as Summary } from "../../src/contract.gen";
import { duration, tokens } from "../../src/pure/text/format";
import type { TextItem } from "../../src/pure/view/items";
import { post } from "../base/api";
import { CopyButton, Icon, IconButton } from "../base/parts";
import { t } from "../base/words";
import { Markdown } from "../text/Markdown";

/** An answer, and the way to go on from it otherwise. */
export function Answer({ item, session }: { item: TextItem; session: string }) {
  const { said } = item;
  return (
    <>
      {item.folded ? (
        <details class="in-full">
          <summary>{t("Full text")}</summary>
          <Markdown text={item.text} done={item.done} />
        </details>
      ) : (
        <Markdown text={item.text} done={item.done} />
      )}
      {item.partial && (
        <p class="notice warning">
          <Icon name="warning" />
          <span>{t("This response was cut off.")}</span>
        </p>
      )}
      {item.done && item.depth === 0 && said !== undefined && (
        <div class={`said-actions${item.between ? " between" : ""}`}>
          <CopyButton text={item.text} />
          <IconButton
            icon="git-branch"
            label={t("Fork Chat from Here")}
            onClick={() => post({ type: "forkSession", session, atSeq: said })}
          />
        </div>
      )}
    </>
  );
}

export function Thought({ item }: { item: TextItem }) {
  const [open, setOpen] = useState(false);
  const ms = item.ended ? Date.parse(item.ended) - Date.parse(item.time) : 0;
  const title = !item.done ? t("Thinking") : ms >= 1000 ? t("Thought for {0}", duration(ms)) : t("Thought");
  return (
    <div class={`thought${open ? " open" : ""}`}>
      <button type="button" class="thought-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={open ? "chevron-down" : "chevron-right"} />
        <span class={item.done ? "" : "shimmer"}>{title}</span>
      </button>
      {open && (
        <div class="thought-text">
          <Markdown text={item.text} done={item.done} />
        </div>
      )}
    </div>
  );
}

export function Compacted({ summary, beforeTokens: before, afterTokens: after }: Summary) {
  const [open, setOpen] = useState(false);
  return (
    <div class={`thought compacted${open ? " open" : ""}`}>
      <button type="button" class="thought-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="fold-up" />
        <span>{t("Summarized earlier messages ({0} → {1} tokens)", tokens(before), tokens(after))}</span>
      </button>
      {open && (
        <div class="thought-text">
          <Markdown text={summary} done />
        </div>
      )}
    </div>
  );
}

/** Old results of tools were shortened for the model; the person still sees them whole. */
export function Pruned({ results, beforeTokens: before, afterTokens: after }: Shortened) {
  return (
    <div class="thought compacted">
      <div class="thought-head">
        <Icon name="fold-up" />
        <span>
          {t("Shortened earlier tool results: {0} ({1} → {2} tokens)", results.length, tokens(before), tokens(after))}
        </span>
      </div>
    </div>
  );
}

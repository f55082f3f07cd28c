// The end of a run: what failed and how to fix it, what was changed, tokens and cost.

import { isScripted } from "../../src/pure/chat/panel";
import { dollars, duration, tokens } from "../../src/pure/text/format";
import type { EndItem } from "../../src/pure/view/items";
import { post } from "../base/api";
import { Icon } from "../base/parts";
import { t } from "../base/words";

/** Kinds of failure after which another model may do better. */
const MODEL_TROUBLE = new Set([
  ...["no_provider", "auth", "rate_limit", "timeout", "connection", "overloaded", "bad_request", "not_found"],
  ...["context_overflow", "stream_cut", "content_filter"],
]);

interface TroubleProps {
  kind: string;
  message: string;
  hint: string;
  /** The run that ended with it, whose request can be made once more. */
  again?: string;
}

/** What went wrong, what can be done, and the button that does it. */
export function Trouble({ kind, message, hint, again }: TroubleProps) {
  return (
    <div class="trouble" role="alert">
      <Icon name="error" />
      <div>
        <p>{message}</p>
        {hint && <p class="dim">{hint}</p>}
        <div class="buttons">
          {again && (
            <button type="button" class="primary" onClick={() => post({ type: "retry", run: again })}>
              {t("Try Again")}
            </button>
          )}
          {(kind === "auth" || kind === "no_provider") && (
            <button
              type="button"
              class="secondary"
              onClick={() => post({ type: "command", command: "daiku.setApiKey" })}
            >
              {t("Set API Key")}
            </button>
          )}
          {MODEL_TROUBLE.has(kind) && (
            <button
              type="button"
              class="secondary"
              onClick={() => post({ type: "command", command: "daiku.selectModel" })}
            >
              {t("Select Model")}
            </button>
          )}
          <button type="button" class="link" onClick={() => post({ type: "command", command: "daiku.showLog" })}>
            {t("Show Log")}
          </button>
        </div>
      </div>
    </div>
  );
}

/** How a run ended that is not completed; empty for one that is. */
export const endWords = (status: EndItem["status"]): string =>
  ({
    completed: "",
    completed_unverified: t("Not verified"),
    cancelled: t("Stopped"),
    failed: t("Failed"),
    limit: t("Limit reached"),
  })[status];

const usageWords = ({ promptTokens, completionTokens, cachedTokens, cost }: EndItem["usage"]): string[] => [
  promptTokens ? t("{0} in", tokens(promptTokens)) : "",
  completionTokens ? t("{0} out", tokens(completionTokens)) : "",
  cachedTokens ? t("{0} cached", tokens(cachedTokens)) : "",
  cost !== undefined ? dollars(cost) : "",
];

/** What a run came to: what it changed, how it ended, what it used. */
export function End({ item, undone }: { item: EndItem; undone: ReadonlySet<string> }) {
  const { usage, status, reasons, unchecked, seconds, changed } = item;
  const used = isScripted(usage.model) ? [] : usageWords(usage);
  const ended = reasons.length ? "" : endWords(status);
  const time = seconds >= 1 ? duration(seconds * 1000) : "";
  const parts = [ended, unchecked ? t("Not checked") : "", time, ...used].filter(Boolean);
  // The error above it has said so.
  const silent = status === "failed" && parts.length === 1;
  return (
    <>
      {changed && !undone.has(changed.checkpointId) && (
        <div class="changed">
          <Icon name="diff-multiple" />
          <span>{changed.files === 1 ? t("1 file changed") : t("{0} files changed", changed.files)}</span>
          <span class="ways">
            <button type="button" class="link" onClick={() => post({ type: "command", command: "daiku.openChanges" })}>
              {t("View Changes")}
            </button>
            <button
              type="button"
              class="link"
              onClick={() => post({ type: "undo", checkpointId: changed.checkpointId })}
            >
              {t("Undo All")}
            </button>
          </span>
        </div>
      )}
      {reasons.length > 0 && (
        <p class="unverified" role="alert">
          <Icon name="warning" />
          <span>{t("Not verified: {0}.", reasons.join("; "))}</span>
        </p>
      )}
      {!silent && <p class={`end ${status}`}>{parts.join(" · ")}</p>}
    </>
  );
}

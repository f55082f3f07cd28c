// The person's message with its context items, and actions to copy it or edit it in a new chat.

import type { ContextItem } from "../../src/contract.gen";
import type { UserItem } from "../../src/pure/view/items";
import { post } from "../base/api";
import { CopyButton, Icon, IconButton } from "../base/parts";
import { t } from "../base/words";

export function User({ item, session }: { item: UserItem; session: string }) {
  const branch = () => post({ type: "forkSession", session, atSeq: Math.max(0, Math.floor(item.key) - 1) });
  return (
    <article class="bubble" aria-label={t("You")}>
      <div class="said">{item.text}</div>
      {(item.context.length > 0 || item.images > 0) && (
        <div class="chips">
          {item.context.map((context) => (
            <span class="chip" key={JSON.stringify(context)}>
              <Icon name={CONTEXT_ICONS[context.kind]} />
              {contextName(context)}
            </span>
          ))}
          {item.images > 0 && (
            <span class="chip">
              <Icon name="file-media" />
              {item.images}
            </span>
          )}
        </div>
      )}
      {item.unread ? (
        <p class="unread dim">
          <Icon name="clock" /> {t("Daiku will read this before its next response")}
        </p>
      ) : null}
      <div class="bubble-actions">
        <CopyButton text={item.text} />
        {!item.steering && item.depth === 0 && (
          <IconButton
            icon="edit"
            label={t("Edit in New Chat")}
            onClick={() => post({ type: "rephrase", run: item.run })}
          />
        )}
        {!item.steering && <IconButton icon="git-branch" label={t("Fork Chat from Here")} onClick={branch} />}
      </div>
    </article>
  );
}

const CONTEXT_ICONS: Record<ContextItem["kind"], string> = {
  file: "file",
  selection: "selection",
  diagnostics: "warning",
  terminal: "terminal",
  url: "link",
  text: "note",
  symbol: "symbol-method",
};

function contextName({ kind, uri, range, text }: ContextItem): string {
  if (kind === "diagnostics" && !uri) return t("Problems");
  if (!uri) return (text ?? kind).slice(0, 40);
  const name = decodeURIComponent(uri.split("/").at(-1) ?? uri);
  return range ? `${name}:${range.start.line + 1}–${range.end.line + 1}` : name;
}

// Former chats: searched, opened, deleted.

import { useEffect, useRef } from "preact/hooks";
import type { Session } from "../src/contract.gen";
import { ago } from "../src/pure/text/format";
import { post } from "./base/api";
import { Icon, IconButton } from "./base/parts";
import { t } from "./base/words";
import type { PanelState } from "./store";

const STATUS_ICONS: Partial<Record<Session["status"], string>> = {
  running: "loading",
  waiting: "question",
  paused: "debug-pause",
  interrupted: "debug-disconnect",
  failed: "error",
};

export function History({ history, onClose }: { history: PanelState["history"]; onClose: () => void }) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    post({ type: "sessions", query: "" });
    box.current?.focus();
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Escape") onClose();
    else if (event.key === "ArrowDown") document.querySelector<HTMLElement>(".history .session-open")?.focus();
    else return;
    event.preventDefault();
  };
  return (
    <section class="history" aria-label={t("Chat History")}>
      <div class="history-head">
        <div class="search">
          <Icon name="search" />
          <input
            ref={box}
            type="text"
            placeholder={t("Search chats")}
            aria-label={t("Search chats")}
            onKeyDown={onKeyDown}
            onInput={(event) => post({ type: "sessions", query: event.currentTarget.value })}
          />
        </div>
        <IconButton icon="close" label={t("Close")} onClick={onClose} />
      </div>
      <ul>
        {history.sessions.map((session) => (
          <Row key={session.sessionId} session={session} current={session.sessionId === history.current} />
        ))}
      </ul>
      {history.loaded && history.sessions.length === 0 && (
        <p class="none">{history.query ? t("No results found") : t("No chats yet")}</p>
      )}
    </section>
  );
}

function Row({ session, current }: { session: Session; current: boolean }) {
  const onKeyDown = (event: KeyboardEvent) => {
    const row = (event.currentTarget as HTMLElement).closest("li");
    const next = { ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling }[event.key];
    if (event.key === "Delete") post({ type: "deleteSession", session: session.sessionId });
    else if (next) next.querySelector<HTMLElement>(".session-open")?.focus();
    else return;
    event.preventDefault();
  };
  const icon = STATUS_ICONS[session.status];
  return (
    <li class={current ? "current" : ""}>
      <button
        type="button"
        class="session-open"
        aria-current={current}
        onKeyDown={onKeyDown}
        onClick={() => post({ type: "openSession", session: session.sessionId })}
      >
        <span class="session-title">
          {icon && <Icon name={icon} spin={session.status === "running"} />}
          <span class="ellipsis">{session.title || t("New chat")}</span>
        </span>
        <span class="dim">{ago(session.updatedAt, document.documentElement.lang || undefined, t("now"))}</span>
      </button>
      <IconButton
        icon="trash"
        label={t("Delete")}
        onClick={() => post({ type: "deleteSession", session: session.sessionId })}
      />
    </li>
  );
}

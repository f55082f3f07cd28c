// What waits for the person: may I, and what do you mean?

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ApprovalGiven } from "../../src/contract.gen";
import { toolFace } from "../../src/pure/view/toolFace";
import type { ApprovalItem, QuestionItem } from "../../src/pure/view/view";
import { post } from "../base/api";
import { Icon, IconButton } from "../base/parts";
import { t } from "../base/words";
import { composing } from "../composer/Composer";
import { type Choosing, Diff, hunkCount, Plain } from "../text/Diff";

/** A key press that was meant for something else must not answer a question that has just appeared. */
const GRACE_MS = 500;

const titles = (): Record<ApprovalItem["ask"]["kind"], string> => ({
  read: t("Read this?"),
  edit: t("Apply this change?"),
  command: t("Run this command?"),
  network: t("Use the network?"),
  mcp: t("Call this tool?"),
  plan: t("Go on with this plan?"),
});
const ICONS: Record<ApprovalItem["ask"]["kind"], string> = {
  read: "eye",
  edit: "edit",
  command: "terminal",
  network: "globe",
  mcp: "plug",
  plan: "checklist",
};

export function Approval({ item, focus }: { item: ApprovalItem; focus: number }) {
  const card = useRef<HTMLElement>(null);
  const since = useRef(performance.now());
  const [telling, setTelling] = useState(false);
  const [left, setLeft] = useState<ReadonlySet<number>>(new Set());
  // Where the server cannot take the preview apart, or counts what has no lines (a file only renamed), it is
  // all or nothing: numbers that differ would choose other hunks than those shown.
  const count = useMemo(() => (hunkCount(item.ask.preview) === item.ask.hunks ? item.ask.hunks : 0), [item.ask]);
  const chosen = count - left.size;
  const pending = item.decision === undefined;
  useEffect(() => {
    if (pending && !composing()) card.current?.focus({ preventScroll: true });
  }, [pending]);
  useEffect(() => {
    if (focus && pending) card.current?.focus();
  }, [focus]);
  if (!pending) return <Answered item={item} />;
  const decide = (decision: ApprovalGiven["decision"], feedback?: string) => {
    if (performance.now() - since.current < GRACE_MS) return;
    post({
      type: "approve",
      run: item.run,
      approvalId: item.ask.approvalId,
      decision,
      ...(feedback ? { feedback } : {}),
      ...(decision === "allow_once" && left.size ? { hunks: range(count).filter((n) => !left.has(n)) } : {}),
    });
  };
  const toggle = (hunk: number) => {
    const next = new Set(left);
    if (!next.delete(hunk)) next.add(hunk);
    setLeft(next);
  };
  const keyed = (event: KeyboardEvent) => {
    if (event.target !== card.current || event.isComposing) return;
    if (event.key === "Enter" && (chosen > 0 || count === 0)) decide("allow_once");
    else if (event.key === "Escape") decide("reject_once");
    else return;
    event.preventDefault();
  };
  const { kind, why, remember } = item.ask;
  const title = titles()[kind];
  return (
    <section ref={card} class="card approval" tabindex={-1} aria-label={title} onKeyDown={keyed}>
      <header>
        <Icon name={ICONS[kind]} />
        <strong>{title}</strong>
      </header>
      {why && <p class="why">{why}</p>}
      <Preview item={item} choosing={count > 1 ? { left, toggle } : undefined} />
      {telling ? (
        <Feedback onSend={(text) => decide("reject_once", text)} onCancel={() => setTelling(false)} />
      ) : (
        <div class="buttons">
          <button
            type="button"
            class="primary"
            disabled={count > 0 && chosen === 0}
            onClick={() => decide("allow_once")}
          >
            {left.size ? t("Allow {0} of {1}", chosen, count) : kind === "plan" ? t("Approve") : t("Allow once")}
          </button>
          {remember && left.size === 0 && (
            <button
              type="button"
              class="secondary"
              title={remember}
              aria-describedby={`always-${item.key}`}
              onClick={() => decide("allow_always")}
            >
              {t("Always allow")}
            </button>
          )}
          <button type="button" class="secondary" onClick={() => decide("reject_once")}>
            {t("Reject")}
          </button>
          <IconButton icon="comment" label={t("Reject and say why…")} onClick={() => setTelling(true)} />
        </div>
      )}
      <footer>
        {remember && left.size === 0 && (
          <span id={`always-${item.key}`}>
            {t("Always: {0} (kept for this workspace; the command “What Is Always Allowed” takes it back)", remember)}
          </span>
        )}
        <span class="keys">
          <kbd>Enter</kbd> {kind === "plan" ? t("approve") : t("allow once")} <kbd>Esc</kbd> {t("reject")}
        </span>
      </footer>
    </section>
  );
}

const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

function Preview({ item, choosing }: { item: ApprovalItem; choosing: Choosing | undefined }) {
  const { kind, preview, tool, args } = item.ask;
  if (kind === "plan") return null; // it stands above, as its own card
  if (kind === "edit") return <Diff diff={preview} exact choosing={choosing} />;
  const text = preview || toolFace(tool, args).subject || JSON.stringify(args, null, 2);
  return <Plain text={kind === "command" ? `$ ${text}` : text} exact />;
}

function Answered({ item }: { item: ApprovalItem }) {
  const face = toolFace(item.ask.tool, item.ask.args);
  const words: Record<NonNullable<ApprovalItem["decision"]>, string> = {
    allow_once: t("Allowed"),
    allow_always: t("Always allowed"),
    reject_once: t("Rejected"),
    reject_always: t("Always rejected"),
    expired: t("Not answered"),
  };
  const allowed = item.decision === "allow_once" || item.decision === "allow_always";
  return (
    <div class={`tool answered ${allowed ? "ok" : "interrupted"}`}>
      <div class="tool-line">
        <span class="tool-head">
          <span class="status">
            <Icon name={allowed ? "pass" : "circle-slash"} />
          </span>
          <span class="title">{words[item.decision ?? "expired"]}</span>
          <span class="subject">
            {t(face.title)} {face.subject.split("\n")[0]}
          </span>
        </span>
      </div>
      {item.feedback && <div class="tool-error">{item.feedback}</div>}
    </div>
  );
}

function Feedback({ onSend, onCancel }: { onSend: (text: string) => void; onCancel: () => void }) {
  const [text, setText] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => box.current?.focus(), []);
  const keyed = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.key === "Escape") onCancel();
    else if (event.key === "Enter" && !event.shiftKey) onSend(text.trim());
    else return;
    event.preventDefault();
  };
  const label = t("What should be done instead?");
  return (
    <div class="feedback">
      <textarea
        ref={box}
        rows={2}
        value={text}
        placeholder={label}
        aria-label={label}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={keyed}
      />
      <div class="buttons">
        <button type="button" class="primary" onClick={() => onSend(text.trim())}>
          {t("Reject")}
        </button>
        <button type="button" class="secondary" onClick={onCancel}>
          {t("Back")}
        </button>
      </div>
    </div>
  );
}

export function Question({ item, focus }: { item: QuestionItem; focus: number }) {
  const [text, setText] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);
  const open = item.answer === undefined && !item.expired;
  useEffect(() => {
    if (open && !composing()) box.current?.focus({ preventScroll: true });
  }, [open]);
  useEffect(() => {
    if (focus && open) box.current?.focus();
  }, [focus]);
  const send = (answer: string) => {
    if (answer.trim()) post({ type: "answer", run: item.run, inputId: item.ask.inputId, text: answer.trim() });
  };
  const keyed = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send(text);
  };
  return (
    <section class={`card question${open ? "" : " answered"}`} aria-label={t("Question")}>
      <header>
        <Icon name="question" />
        <strong>{item.ask.question}</strong>
      </header>
      {open && (
        <>
          <div class="choices">
            {item.ask.choices.map((choice) => (
              <button type="button" class="secondary" key={choice} onClick={() => send(choice)}>
                {choice}
              </button>
            ))}
          </div>
          <div class="answer">
            <textarea
              ref={box}
              rows={1}
              value={text}
              placeholder={t("Your answer")}
              aria-label={t("Your answer")}
              onInput={(e) => setText(e.currentTarget.value)}
              onKeyDown={keyed}
            />
            <button type="button" class="primary" disabled={!text.trim()} onClick={() => send(text)}>
              {t("Answer")}
            </button>
          </div>
        </>
      )}
      {!open && <p class="given">{item.answer ?? t("Not answered")}</p>}
    </section>
  );
}

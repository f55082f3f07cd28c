// An approval: what is asked for, the keys and buttons that allow or reject it, and what was answered.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ApprovalGiven } from "../../src/contract.gen";
import type { ApprovalItem } from "../../src/pure/view/items";
import { toolFace } from "../../src/pure/view/toolFace";
import { post } from "../base/api";
import { Icon, IconButton } from "../base/parts";
import { t } from "../base/words";
import { isWriting } from "../base/writing";
import { type Choosing, Diff, hunkCount, Plain } from "../text/Diff";

/** A key press that was meant for something else must not answer a question that has just appeared. */
const GRACE_MS = 500;

const titles = (): Record<ApprovalItem["ask"]["kind"], string> => ({
  read: t("Read this?"),
  edit: t("Apply this change?"),
  command: t("Run this command?"),
  network: t("Allow network access?"),
  mcp: t("Call this tool?"),
  plan: t("Continue with this plan?"),
  memory: t("Update memory?"),
});
const ICONS: Record<ApprovalItem["ask"]["kind"], string> = {
  read: "eye",
  edit: "edit",
  command: "terminal",
  network: "globe",
  mcp: "plug",
  plan: "checklist",
  memory: "bookmark",
};

export function Approval({ item, focus }: { item: ApprovalItem; focus: number }) {
  const card = useRef<HTMLElement>(null);
  const since = useRef(performance.now());
  const hunks = useChosenHunks(item.ask);
  const pending = item.decision === undefined;
  useEffect(() => {
    if (pending && !isWriting()) card.current?.focus({ preventScroll: true });
  }, [pending]);
  useEffect(() => {
    if (focus && pending) card.current?.focus();
  }, [focus]);
  if (!pending) return <AnsweredLine item={item} />;
  const decide: Decide = (decision, feedback) => {
    if (performance.now() - since.current < GRACE_MS) return;
    const chosen = decision === "allow_once" && hunks.left.size ? { hunks: hunks.numbers } : {};
    const { approvalId } = item.ask;
    post({ type: "approve", run: item.run, approvalId, decision, ...(feedback ? { feedback } : {}), ...chosen });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== card.current || event.isComposing) return;
    if (event.key === "Enter" && !hunks.none) decide("allow_once");
    else if (event.key === "Escape") decide("reject_once");
    else return;
    event.preventDefault();
  };
  const { kind, why } = item.ask;
  const title = titles()[kind];
  return (
    <section ref={card} class="card approval" tabindex={-1} aria-label={title} onKeyDown={onKeyDown}>
      <header>
        <Icon name={ICONS[kind]} />
        <strong>{title}</strong>
      </header>
      {why && <p class="why">{why}</p>}
      <Preview item={item} choosing={hunks.count > 1 ? hunks : undefined} />
      <Decision item={item} hunks={hunks} decide={decide} />
    </section>
  );
}

type Decide = (decision: ApprovalGiven["decision"], feedback?: string) => void;

interface ChosenHunks extends Choosing {
  /** How many there are to choose from; 0: all or nothing. */
  count: number;
  /** Those that are wanted, counted from 0. */
  numbers: number[];
  /** All of them are left out. */
  none: boolean;
}

/** Which hunks of an edit the person wants. */
function useChosenHunks({ preview, hunks }: ApprovalItem["ask"]): ChosenHunks {
  const [left, setLeft] = useState<ReadonlySet<number>>(new Set());
  // Where the server cannot take the preview apart, or counts what has no lines (a file only renamed), it is
  // all or nothing: numbers that differ would choose other hunks than those shown.
  const count = useMemo(() => (hunkCount(preview) === hunks ? hunks : 0), [preview, hunks]);
  const numbers = Array.from({ length: count }, (_, n) => n).filter((n) => !left.has(n));
  const toggle = (hunk: number) => {
    const next = new Set(left);
    if (!next.delete(hunk)) next.add(hunk);
    setLeft(next);
  };
  return { left, toggle, count, numbers, none: count > 0 && numbers.length === 0 };
}

/** The buttons, and what the keys and "always" mean. */
function Decision({ item, hunks, decide }: { item: ApprovalItem; hunks: ChosenHunks; decide: Decide }) {
  const [telling, setTelling] = useState(false);
  const { kind, remember } = item.ask;
  const { left, count, numbers } = hunks;
  const always = remember && left.size === 0;
  return (
    <>
      {telling ? (
        <Feedback onSend={(text) => decide("reject_once", text)} onCancel={() => setTelling(false)} />
      ) : (
        <div class="buttons">
          <button type="button" class="primary" disabled={hunks.none} onClick={() => decide("allow_once")}>
            {left.size
              ? t("Allow {0} of {1}", numbers.length, count)
              : kind === "plan"
                ? t("Approve")
                : t("Allow Once")}
          </button>
          {always && (
            <button
              type="button"
              class="secondary"
              title={remember}
              aria-describedby={`always-${item.key}`}
              onClick={() => decide("allow_always")}
            >
              {t("Always Allow")}
            </button>
          )}
          <button type="button" class="secondary" onClick={() => decide("reject_once")}>
            {t("Reject")}
          </button>
          <IconButton icon="comment" label={t("Reject with Feedback…")} onClick={() => setTelling(true)} />
        </div>
      )}
      <footer>
        {always && (
          <span id={`always-${item.key}`}>
            {t("Always allow: {0} (saved for this workspace; to undo, run “Manage Saved Permissions”)", remember)}
          </span>
        )}
        <span class="keys">
          <kbd>Enter</kbd> {kind === "plan" ? t("approve") : t("allow once")} <kbd>Esc</kbd> {t("reject")}
        </span>
      </footer>
    </>
  );
}

function Preview({ item, choosing }: { item: ApprovalItem; choosing: Choosing | undefined }) {
  const { kind, preview, tool, args } = item.ask;
  if (kind === "plan") return null; // it stands above, as its own card
  if (kind === "edit") return <Diff diff={preview} exact choosing={choosing} />;
  const text = preview || toolFace(tool, args).subject || JSON.stringify(args, null, 2);
  return <Plain text={kind === "command" ? `$ ${text}` : text} exact />;
}

function AnsweredLine({ item }: { item: ApprovalItem }) {
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
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.key === "Escape") onCancel();
    else if (event.key === "Enter" && !event.shiftKey) onSend(text.trim());
    else return;
    event.preventDefault();
  };
  const label = t("What should Daiku do instead?");
  return (
    <div class="feedback">
      <textarea
        ref={box}
        rows={2}
        value={text}
        placeholder={label}
        aria-label={label}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={onKeyDown}
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

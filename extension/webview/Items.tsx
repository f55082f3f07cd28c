// Each item of the conversation in its own dress.

import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import type { ContextItem, Restored, Review } from "../src/contract.gen";
import { plainText } from "../src/pure/ansi";
import { duration, tokens } from "../src/pure/format";
import type { Item, TextItem, UserItem } from "../src/pure/view";
import { Approval, Question } from "./Asks";
import { post } from "./api";
import { End, Trouble } from "./Ends";
import { Handoff } from "./Handoff";
import { Markdown } from "./Markdown";
import { PlanCard, type Proofs } from "./Plan";
import { CopyButton, Icon, IconButton, PathLink } from "./parts";
import type { DiffOf } from "./Report";
import { Edits, Tool } from "./Tool";
import { t } from "./words";

interface Props {
  item: Item;
  undone: ReadonlySet<string>;
  /** The checkpoint that brings back what was undone or rejected last. */
  redo: string | undefined;
  focus: number;
  /** The run that ended with this, whose request can be made once more. */
  again: string | undefined;
  session: string;
  /** What items need that speak of others: plans and nested runs. */
  around?: Around;
}

export interface Around {
  proofs: Proofs;
  working: boolean;
  diffOf: DiffOf;
  /** The nested runs that are unfolded. */
  isOpen: (child: string) => boolean;
  toggle: (child: string) => void;
}

export const ItemView = memo(({ item, undone, redo, focus, again, session, around }: Props) => (
  <div class={`item item-${item.kind}${item.depth ? ` depth-${item.depth}` : ""}`} data-key={item.key}>
    <Inner {...{ item, undone, redo, focus, again, session }} {...(around ? { around } : {})} />
  </div>
));

function Inner({ item, undone, redo, focus, again, session, around }: Props) {
  switch (item.kind) {
    case "user":
      return <User item={item} session={session} />;
    case "text":
      return <Said item={item} session={session} />;
    case "thinking":
      return <Thought item={item} />;
    case "tool":
      return SHOWN_OTHERWISE.has(item.tool) && item.status !== "failed" ? null : <Tool item={item} undone={undone} />;
    case "approval":
      return <Approval item={item} focus={focus} />;
    case "question":
      return <Question item={item} focus={focus} />;
    case "edit":
      return <Edits edit={item.edit} undone={undone} />;
    case "plan":
      return around ? <PlanCard plan={item.plan} proofs={around.proofs} working={around.working} /> : null;
    case "handoff":
      return around ? <Handoff item={item} around={around} /> : null;
    case "review":
      return <Decided review={item.review} />;
    case "restored":
      return <Back restored={item.restored} back={item.back} redo={redo} />;
    case "notice":
      return (
        <p class={`notice ${item.level}`}>
          <Icon name={NOTICE_ICONS[item.level]} />
          <span>{item.text}</span>
        </p>
      );
    case "error":
      return <Trouble {...item.error} {...(again ? { again } : {})} />;
    case "compacted":
      return <Compacted summary={item.summary} before={item.before} after={item.after} />;
    case "bullet":
      return (
        <p class="notice info">
          <Icon name="lightbulb" />
          <span>{t("Learnt: {0}", item.bullet.content)}</span>
        </p>
      );
    case "end":
      return <End item={item} undone={undone} />;
    default:
      return ((_unknown: never) => null)(item);
  }
}

/** Calls that have a card of their own. */
const SHOWN_OTHERWISE = new Set(["user/ask", "plan/propose", "plan/update_step", "plan/get", "agent/handoff"]);

const NOTICE_ICONS = { info: "info", warning: "warning", error: "error" };

function User({ item, session }: { item: UserItem; session: string }) {
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
          <Icon name="clock" /> {t("Daiku reads it with its next reply")}
        </p>
      ) : null}
      <div class="bubble-actions">
        <CopyButton text={item.text} />
        {!item.steering && item.depth === 0 && (
          <IconButton
            icon="edit"
            label={t("Say this otherwise, in a new chat")}
            onClick={() => post({ type: "rephrase", run: item.run })}
          />
        )}
        {!item.steering && (
          <IconButton icon="git-branch" label={t("Start again from here in a new chat")} onClick={branch} />
        )}
      </div>
    </article>
  );
}

/** An answer, and the way to go on from it otherwise. */
function Said({ item, session }: { item: TextItem; session: string }) {
  const { said } = item;
  return (
    <>
      {item.folded ? (
        <details class="in-full">
          <summary>{t("In full")}</summary>
          <Markdown text={item.text} done={item.done} />
        </details>
      ) : (
        <Markdown text={item.text} done={item.done} />
      )}
      {item.partial && (
        <p class="notice warning">
          <Icon name={NOTICE_ICONS.warning} />
          <span>{t("This answer was cut off here.")}</span>
        </p>
      )}
      {item.done && item.depth === 0 && said !== undefined && (
        <div class={`said-actions${item.between ? " between" : ""}`}>
          <CopyButton text={item.text} />
          <IconButton
            icon="git-branch"
            label={t("Start again from here in a new chat")}
            onClick={() => post({ type: "forkSession", session, atSeq: said })}
          />
        </div>
      )}
    </>
  );
}

/** What the person decided on changes. */
function Decided({ review: { decision, path, hunks } }: { review: Review }) {
  const accepted = decision === "accept";
  const words =
    hunks === 1
      ? accepted
        ? t("Accepted 1 change in")
        : t("Rejected 1 change in")
      : hunks
        ? accepted
          ? t("Accepted {0} changes in", hunks)
          : t("Rejected {0} changes in", hunks)
        : accepted
          ? t("Accepted")
          : t("Rejected");
  return (
    <p class={`notice decided ${decision}`}>
      <Icon name={accepted ? "check" : "discard"} />
      <span>
        {words} <PathLink path={path} />
      </span>
    </p>
  );
}

/** What bringing files back has made of them. */
export const restoredWords = (files: number, back: boolean): string => {
  if (back)
    return files === 1 ? t("Daiku's change is back in 1 file.") : t("Daiku's changes are back in {0} files.", files);
  return files === 1 ? t("1 file is as it was before.") : t("{0} files are as they were before.", files);
};

interface BackProps {
  restored: Restored;
  back: boolean;
  redo: string | undefined;
}

/** Files that were brought back, and what could not be: what commands have done. */
function Back({ restored: { files, cannotUndo, redo: own }, back, redo }: BackProps) {
  return (
    <section class="card restored" aria-label={back ? t("Brought back") : t("Undone")}>
      <header>
        <Icon name={back ? "redo" : "discard"} />
        <strong>{restoredWords(files.length, back)}</strong>
        <span class="grow" />
        {own !== undefined && own === redo && (
          <button type="button" class="link" onClick={() => post({ type: "command", command: "daiku.redo" })}>
            {t("Bring back")}
          </button>
        )}
      </header>
      {cannotUndo.length > 0 && (
        <div class="stays">
          <p>
            <Icon name="warning" /> {t("What these commands did stays as it is:")}
          </p>
          <ul>
            {cannotUndo.map(({ command, exitCode, time }) => (
              <li key={`${time}${command}`}>
                <code>{plainText(command)}</code>
                {exitCode !== undefined && <span class="dim">{t("exit code {0}", exitCode)}</span>}
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

export const CONTEXT_ICONS: Record<ContextItem["kind"], string> = {
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

function Thought({ item }: { item: TextItem }) {
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

function Compacted({ summary, before, after }: { summary: string; before: number; after: number }) {
  const [open, setOpen] = useState(false);
  return (
    <div class={`thought compacted${open ? " open" : ""}`}>
      <button type="button" class="thought-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="fold-up" />
        <span>{t("Older messages were summarised ({0} → {1} tokens)", tokens(before), tokens(after))}</span>
      </button>
      {open && (
        <div class="thought-text">
          <Markdown text={summary} done />
        </div>
      )}
    </div>
  );
}

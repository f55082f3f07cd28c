// Where a person writes: grows with the text, safe for input methods, `@` points at things, steers a run under way.

import { useEffect, useRef, useState } from "preact/hooks";
import { type Attachment, isScripted, type Mode, modelInUse, type Situation } from "../../src/pure/chat/panel";
import { keep, kept, post } from "../base/api";
import { Menu } from "../base/Menu";
import { Icon, IconButton } from "../base/parts";
import { t } from "../base/words";

let composer: HTMLTextAreaElement | null = null;

/** The person is in the middle of writing. */
export const composing = (): boolean =>
  composer !== null && document.activeElement === composer && composer.value !== "";

const MODES: readonly Mode[] = ["act", "plan", "ask"];
const MODE_ICONS: Record<Mode, string> = { act: "tools", plan: "checklist", ask: "comment-discussion" };
const modeWords = (): Record<Mode, [name: string, what: string]> => ({
  act: [t("Act"), t("Edits files and runs commands, and asks first")],
  plan: [t("Plan"), t("Looks around and proposes a plan; changes nothing")],
  ask: [t("Ask"), t("Answers questions; changes nothing")],
});

interface Props {
  situation: Situation;
  working: boolean;
  attachments: readonly Attachment[];
  candidates: { query: string; list: readonly Attachment[] };
  prefill: { text: string; n: number } | undefined;
  focus: number;
  usage: Usage | undefined;
  /** What the person said in this chat, the newest first. */
  said: readonly string[];
  onAttach: (attachment: Attachment) => void;
  onDetach: (attachment: Attachment) => void;
  onSent: (text: string) => void;
}

const MOST_REMEMBERED = 50;

const remembered = (text: string, former: readonly string[]): string[] =>
  [text, ...former.filter((one) => one !== text)].slice(0, MOST_REMEMBERED);

/** What was said here, then what was said in other chats. */
const formerly = (here: readonly string[]): readonly string[] => [...new Set([...here, ...(kept().said ?? [])])];

export interface Usage {
  short: string;
  long: string;
}

export function Composer(props: Props) {
  const { situation, working, attachments, candidates, prefill, focus, onAttach } = props;
  const box = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(kept().draft);
  const [mention, setMention] = useState<{ from: number; query: string }>();
  const [at, setAt] = useState(0);
  const [back, setBack] = useState(-1);

  useEffect(() => {
    composer = box.current;
    return () => {
      composer = null;
    };
  }, []);
  useEffect(() => keep({ ...kept(), draft: text }), [text]);
  useEffect(() => {
    if (!prefill) return;
    setText(prefill.text);
    box.current?.focus();
  }, [prefill?.n]);
  useEffect(() => {
    if (focus) box.current?.focus();
  }, [focus]);
  useEffect(() => {
    const area = box.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  }, [text]);

  const list = mention && candidates.query === mention.query ? candidates.list : [];
  const seek = (value: string, caret: number) => {
    const found = /(?:^|\s)@(\S*)$/.exec(value.slice(0, caret));
    if (!found) return setMention(undefined);
    const query = found[1] ?? "";
    setMention({ from: caret - query.length - 1, query });
    setAt(0);
    post({ type: "candidates", query });
  };
  const take = (attachment: Attachment) => {
    if (mention) {
      const end = mention.from + mention.query.length + 1;
      setText(text.slice(0, mention.from) + text.slice(end));
    }
    setMention(undefined);
    onAttach(attachment);
    box.current?.focus();
  };
  const send = () => {
    const said = text.trim();
    if (!said) return;
    if (working) post({ type: "steer", text: said });
    else post({ type: "send", text: said, context: attachments.map((a) => a.item) });
    setText("");
    setBack(-1);
    keep({ draft: "", said: remembered(said, kept().said ?? []) });
    props.onSent(said);
  };
  /** Through what was sent before: only from an empty box, or from what was brought back and not changed since. */
  const recall = (by: 1 | -1): boolean => {
    const former = formerly(props.said);
    const untouched = back < 0 ? text === "" : text === former[back];
    const next = back + by;
    if (!untouched || next < -1 || next >= former.length) return false;
    setBack(next);
    setText(former[next] ?? "");
    return true;
  };
  const keyed = (event: KeyboardEvent) => {
    // An input method uses Enter, Escape and the arrows for itself (229: browsers that do not say `isComposing`).
    if (event.isComposing || event.keyCode === 229) return;
    if (mention && list.length > 0) {
      const step = { ArrowDown: 1, ArrowUp: list.length - 1 }[event.key];
      const chosen = list[at];
      if (step !== undefined) setAt((at + step) % list.length);
      else if ((event.key === "Enter" || event.key === "Tab") && chosen) take(chosen);
      else if (event.key === "Escape") setMention(undefined);
      else return;
      return event.preventDefault();
    }
    if (event.key === "Escape" && working) return post({ type: "stop" });
    const way = { ArrowUp: 1, ArrowDown: -1 } as const;
    if ((event.key === "ArrowUp" || event.key === "ArrowDown") && !event.shiftKey && recall(way[event.key]))
      return event.preventDefault();
    if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
    event.preventDefault();
    send();
  };
  const point = () => {
    const area = box.current;
    if (!area) return;
    const caret = area.selectionStart;
    const gap = caret > 0 && !/\s$/.test(text.slice(0, caret)) ? " @" : "@";
    const value = text.slice(0, caret) + gap + text.slice(caret);
    setText(value);
    area.focus();
    requestAnimationFrame(() => {
      area.setSelectionRange(caret + gap.length, caret + gap.length);
      seek(value, caret + gap.length);
    });
  };
  const placeholder = working ? t("Add to the work under way…") : t("Ask or tell Daiku (@ for context)");
  return (
    <div class="composer">
      {mention && <Suggestions list={list} at={at} waiting={candidates.query !== mention.query} onTake={take} />}
      <div class="composer-box">
        {attachments.length > 0 && (
          <div class="chips">
            {attachments.map((attachment) => (
              <span class="chip" key={JSON.stringify(attachment.item)} title={attachment.detail}>
                <Icon name={attachment.icon} />
                <span>{attachment.label}</span>
                <IconButton
                  icon="close"
                  label={t("Remove {0}", attachment.label)}
                  onClick={() => props.onDetach(attachment)}
                />
              </span>
            ))}
          </div>
        )}
        <textarea
          ref={box}
          class="composer-text"
          rows={1}
          value={text}
          placeholder={placeholder}
          aria-label={t("Message to Daiku")}
          aria-autocomplete="list"
          aria-controls={mention ? "suggestions" : undefined}
          aria-activedescendant={mention && list.length ? `suggestion-${at}` : undefined}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setBack(-1);
            seek(event.currentTarget.value, event.currentTarget.selectionStart);
          }}
          onKeyDown={keyed}
          onBlur={() => setTimeout(() => document.activeElement !== box.current && setMention(undefined), 150)}
        />
        <div class="composer-bar">
          <IconButton icon="mention" label={t("Add context")} onClick={point} />
          <ModeMenu mode={situation.mode} />
          <ModelButton situation={situation} />
          <span class="grow" />
          {working && (
            <IconButton icon="debug-stop" class="stop" label={t("Stop (Esc)")} onClick={() => post({ type: "stop" })} />
          )}
          {(!working || text.trim()) && (
            <IconButton
              icon="arrow-up"
              class="send"
              label={working ? t("Send to the work under way (Enter)") : t("Send (Enter)")}
              disabled={!text.trim()}
              onClick={send}
            />
          )}
        </div>
      </div>
      {props.usage && (
        <div class="usage" title={props.usage.long}>
          {props.usage.short}
        </div>
      )}
    </div>
  );
}

function Suggestions(props: {
  list: readonly Attachment[];
  at: number;
  waiting: boolean;
  onTake: (a: Attachment) => void;
}) {
  const { list, at, waiting, onTake } = props;
  useEffect(() => document.getElementById(`suggestion-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  return (
    <div id="suggestions" class="popup suggestions" role="listbox" aria-label={t("Add context")}>
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
      {list.length === 0 && <div class="option none">{waiting ? t("Searching…") : t("Nothing found")}</div>}
    </div>
  );
}

function ModeMenu({ mode }: { mode: Mode }) {
  const words = modeWords();
  const options = MODES.map((id) => ({ id, icon: MODE_ICONS[id], name: words[id][0], detail: words[id][1] }));
  return (
    <Menu
      label={t("Mode")}
      options={options}
      value={mode}
      onChoose={(id) => post({ type: "setMode", mode: id as Mode })}
    />
  );
}

function ModelButton({ situation }: { situation: Situation }) {
  const id = modelInUse(situation);
  const name = id.slice(id.indexOf("/") + 1);
  const scripted = isScripted(id);
  const label = name ? t("Model: {0}", id) : t("Select model");
  return (
    <button
      type="button"
      class="pick model"
      title={label}
      aria-label={label}
      onClick={() => post({ type: "command", command: "daiku.selectModel" })}
    >
      {scripted && <Icon name="play-circle" />}
      <span class="ellipsis">
        {scripted ? t("Script: {0}", name.split("/").at(-1) ?? name) : name || (situation.models ? t("No model") : "…")}
      </span>
      <Icon name="chevron-down" />
    </button>
  );
}

// Where a person writes: grows with the text, safe for input methods, `@` points at things, steers a run under way.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Attachment, Situation } from "../../src/pure/chat/panel";
import { post, savedState, saveState } from "../base/api";
import { Icon, IconButton } from "../base/parts";
import { t } from "../base/words";
import { setComposer } from "../base/writing";
import { Bar } from "./Bar";
import { remember, useRecall } from "./recall";
import { type Candidates, type Mention, Suggestions, useMention } from "./Suggestions";

interface Props {
  situation: Situation;
  working: boolean;
  attachments: readonly Attachment[];
  candidates: Candidates;
  prefill: { text: string; n: number } | undefined;
  focus: number;
  usage: Usage | undefined;
  /** What the person said in this chat, the newest first. */
  said: readonly string[];
  onAttach: (attachment: Attachment) => void;
  onDetach: (attachment: Attachment) => void;
  onSent: (text: string) => void;
}

export interface Usage {
  short: string;
  long: string;
}

export function Composer(props: Props) {
  const { situation, working, attachments, candidates, onAttach } = props;
  const { box, text, setText } = useBox(props);
  const { recall, reset } = useRecall(props.said, text, setText);
  const mention = useMention(candidates, (attachment, from, to) => {
    setText(text.slice(0, from) + text.slice(to));
    onAttach(attachment);
    box.current?.focus();
  });
  const send = () => {
    const message = text.trim();
    if (!message) return;
    if (working) post({ type: "steer", text: message });
    else post({ type: "send", text: message, context: attachments.map((a) => a.item) });
    setText("");
    reset();
    remember(message);
    props.onSent(message);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // An input method uses Enter, Escape and the arrows for itself (229: browsers that do not say `isComposing`).
    if (event.isComposing || event.keyCode === 229) return;
    if (mention.takesKeys) return mention.onKey(event.key) ? event.preventDefault() : undefined;
    if (event.key === "Escape" && working) return post({ type: "stop" });
    const way = { ArrowUp: 1, ArrowDown: -1 } as const;
    if ((event.key === "ArrowUp" || event.key === "ArrowDown") && !event.shiftKey && recall(way[event.key]))
      return event.preventDefault();
    if (event.key !== "Enter" || event.shiftKey || event.altKey) return;
    event.preventDefault();
    send();
  };
  const onInput = (value: string, caret: number) => {
    setText(value);
    reset();
    mention.seek(value, caret);
  };
  const point = () => insertMention(box.current, text, setText, mention.seek);
  return (
    <div class="composer">
      {mention.open && <Suggestions {...mention} onTake={mention.take} />}
      <div class="composer-box">
        <Chips attachments={attachments} onDetach={props.onDetach} />
        <TextBox {...{ box, text, working, mention, onInput, onKeyDown }} />
        <Bar situation={situation} working={working} written={text.trim() !== ""} onPoint={point} onSend={send} />
      </div>
      {props.usage && <UsageLine {...props.usage} />}
    </div>
  );
}

const UsageLine = ({ short, long }: Usage) => (
  <div class="usage" title={long}>
    {short}
  </div>
);

interface TextBoxProps {
  box: RefObject<HTMLTextAreaElement | null>;
  text: string;
  working: boolean;
  mention: Mention;
  onInput: (value: string, caret: number) => void;
  onKeyDown: (event: KeyboardEvent) => void;
}

function TextBox({ box, text, working, mention, onInput, onKeyDown }: TextBoxProps) {
  return (
    <textarea
      ref={box}
      class="composer-text"
      rows={1}
      value={text}
      placeholder={
        working ? t("Send a follow-up to the current run…") : t("Ask Daiku or describe a task (@ for context)")
      }
      aria-label={t("Message to Daiku")}
      aria-autocomplete="list"
      aria-controls={mention.open ? "suggestions" : undefined}
      aria-activedescendant={mention.takesKeys ? `suggestion-${mention.at}` : undefined}
      onInput={({ currentTarget }) => onInput(currentTarget.value, currentTarget.selectionStart)}
      onKeyDown={onKeyDown}
      onBlur={() => setTimeout(() => document.activeElement !== box.current && mention.close(), 150)}
    />
  );
}

/** The box and its text, which outlives the panel while it is hidden. */
function useBox({ prefill, focus }: Props) {
  const box = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(savedState().draft);
  useEffect(() => {
    setComposer(box.current);
    return () => setComposer(null);
  }, []);
  useEffect(() => saveState({ ...savedState(), draft: text }), [text]);
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
  return { box, text, setText };
}

type Seek = (value: string, caret: number) => void;

/** Writes an `@` at the caret, as if the person had typed it. */
function insertMention(
  area: HTMLTextAreaElement | null,
  text: string,
  setText: (text: string) => void,
  seek: Seek,
): void {
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
}

/** What the person points at, each with a button that takes it away. */
function Chips({ attachments, onDetach }: Pick<Props, "attachments" | "onDetach">) {
  if (attachments.length === 0) return null;
  return (
    <div class="chips">
      {attachments.map((attachment) => (
        <span class="chip" key={JSON.stringify(attachment.item)} title={attachment.detail}>
          <Icon name={attachment.icon} />
          <span>{attachment.label}</span>
          <IconButton icon="close" label={t("Remove {0}", attachment.label)} onClick={() => onDetach(attachment)} />
        </span>
      ))}
    </div>
  );
}

// A question of the model: choices, or an answer in the person's own words.

import { useEffect, useRef, useState } from "preact/hooks";
import type { QuestionItem } from "../../src/pure/view/items";
import { post } from "../base/api";
import { Icon } from "../base/parts";
import { t } from "../base/words";
import { isWriting } from "../base/writing";

export function Question({ item, focus }: { item: QuestionItem; focus: number }) {
  const [text, setText] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);
  const open = item.answer === undefined && !item.expired;
  useEffect(() => {
    if (open && !isWriting()) box.current?.focus({ preventScroll: true });
  }, [open]);
  useEffect(() => {
    if (focus && open) box.current?.focus();
  }, [focus]);
  const send = (answer: string) => {
    if (answer.trim()) post({ type: "answer", run: item.run, inputId: item.ask.inputId, text: answer.trim() });
  };
  const onKeyDown = (event: KeyboardEvent) => {
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
      {open && <Choices choices={item.ask.choices} onChoose={send} />}
      {open && (
        <div class="answer">
          <textarea
            ref={box}
            rows={1}
            value={text}
            placeholder={t("Your answer")}
            aria-label={t("Your answer")}
            onInput={(e) => setText(e.currentTarget.value)}
            onKeyDown={onKeyDown}
          />
          <button type="button" class="primary" disabled={!text.trim()} onClick={() => send(text)}>
            {t("Answer")}
          </button>
        </div>
      )}
      {!open && <p class="given">{item.answer ?? t("Not answered")}</p>}
    </section>
  );
}

const Choices = ({ choices, onChoose }: { choices: readonly string[]; onChoose: (choice: string) => void }) => (
  <div class="choices">
    {choices.map((choice) => (
      <button type="button" class="secondary" key={choice} onClick={() => onChoose(choice)}>
        {choice}
      </button>
    ))}
  </div>
);

// What the playbook says of a request: how many lessons a run was told or used, and on demand their texts.

import { useState } from "preact/hooks";
import type { LessonsItem } from "../../src/pure/view/items";
import { post } from "../base/api";
import { Icon } from "../base/parts";
import { t } from "../base/words";

const toldWords = (n: number): string =>
  n === 1 ? t("1 lesson from the playbook") : t("{0} lessons from the playbook", n);
const usedWords = (n: number): string => (n === 1 ? t("used 1 lesson") : t("used {0} lessons", n));

/** One line; opened, each lesson with its id, those that the run cited marked. */
export function Lessons({ item }: { item: LessonsItem }) {
  const [open, setOpen] = useState(false);
  const { lessons, used = [] } = item;
  return (
    <div class={`thought lessons${open ? " open" : ""}`}>
      <button type="button" class="thought-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="lightbulb" />
        <span>
          {[toldWords(lessons.length), used.length ? usedWords(used.length) : ""].filter(Boolean).join(" · ")}
        </span>
      </button>
      {open && (
        <ul class="thought-text">
          {lessons.map(({ id, text }) => (
            <li key={id}>
              {used.includes(id) && (
                <span role="img" aria-label={t("used")} title={t("used")}>
                  <Icon name="check" />
                </span>
              )}{" "}
              <button
                type="button"
                class="link"
                title={t("Show in Playbook")}
                onClick={() => post({ type: "openLesson", id })}
              >
                <code>{id}</code>
              </button>{" "}
              {text}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

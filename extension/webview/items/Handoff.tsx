// A nested run: who works for which step; what it does is shown while it goes on and folded after it.

import type { HandoffItem } from "../../src/pure/view/items";
import { AGENT_LABELS } from "../../src/pure/view/tables.gen";
import { Icon } from "../base/parts";
import { t } from "../base/words";
import { Markdown } from "../text/Markdown";
import { ReportCard } from "./Report";
import type { Surroundings } from "./surroundings";

export function Handoff({ item, around }: { item: HandoffItem; around: Surroundings }) {
  const { to, step, child, result, problem, report } = item;
  const done = result !== undefined;
  const open = around.isOpen(child);
  const who = t(AGENT_LABELS[to] ?? to);
  const words = !done ? t("{0} is working", who) : problem ? t("{0} could not finish", who) : t("{0} finished", who);
  return (
    <>
      <div class={`thought handoff${open ? " open" : ""}${problem ? " failed" : ""}`}>
        <button type="button" class="thought-head" aria-expanded={open} onClick={() => around.toggle(child)}>
          <Icon name={open ? "chevron-down" : "chevron-right"} />
          <Icon name={!done ? "loading" : problem ? "error" : "organization"} spin={!done} />
          {step && <span class="step-of">{t("Step {0}", step.n)}</span>}
          <span>{words}</span>
          {step && <span class="dim ellipsis">{step.name}</span>}
        </button>
        {problem && <p class="tool-error">{problem}</p>}
        {open && item.request && (
          <details class="handoff-request">
            <summary>{t("Input")}</summary>
            <Markdown text={item.request} done />
          </details>
        )}
      </div>
      {report && <ReportCard report={report} diffOf={around.diffOf} />}
    </>
  );
}

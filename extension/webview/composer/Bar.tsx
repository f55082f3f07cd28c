// The bar under the composer's text: context, mode, model, stop and send.

import { type Approvals, isScripted, type Mode, modelInUse, type Situation } from "../../src/pure/chat/panel";
import { post } from "../base/api";
import { Menu } from "../base/Menu";
import { Icon, IconButton } from "../base/parts";
import { t } from "../base/words";

const modes = () => [
  {
    id: "act",
    icon: "tools",
    name: t("Act"),
    detail: t("Edits files and runs commands within the selected permissions"),
  },
  {
    id: "plan",
    icon: "checklist",
    name: t("Plan"),
    detail: t("Explores the code and proposes a plan without making changes"),
  },
  { id: "ask", icon: "comment-discussion", name: t("Ask"), detail: t("Answers questions without making changes") },
];

const levels = () => [
  {
    id: "ask",
    icon: "shield",
    name: t("Ask first"),
    detail: t("Asks before edits and commands that make changes"),
  },
  {
    id: "edits",
    icon: "edit",
    name: t("Allow edits"),
    detail: t("Applies edits immediately; asks before running commands"),
  },
  {
    id: "sandbox",
    icon: "package",
    name: t("Allow sandboxed commands"),
    detail: t("Also runs sandboxed commands without network access; asks before other actions"),
  },
];

interface Props {
  situation: Situation;
  working: boolean;
  /** Something is written. */
  written: boolean;
  onPoint: () => void;
  onSend: () => void;
}

export function Bar({ situation, working, written, onPoint, onSend }: Props) {
  return (
    <div class="composer-bar">
      <IconButton icon="mention" label={t("Add Context")} onClick={onPoint} />
      <Menu
        label={t("Mode")}
        options={modes()}
        value={situation.mode}
        onChoose={(id) => post({ type: "setMode", mode: id as Mode })}
      />
      {situation.mode === "act" && (
        <Menu
          label={t("Permissions")}
          options={levels()}
          value={situation.approvals ?? "ask"}
          onChoose={(id) => post({ type: "setApprovals", approvals: id as Approvals })}
        />
      )}
      <ModelButton situation={situation} />
      <span class="grow" />
      {working && (
        <IconButton icon="debug-stop" class="stop" label={t("Stop (Esc)")} onClick={() => post({ type: "stop" })} />
      )}
      {(!working || written) && (
        <IconButton
          icon="arrow-up"
          class="send"
          label={working ? t("Send to Current Run (Enter)") : t("Send (Enter)")}
          disabled={!written}
          onClick={onSend}
        />
      )}
    </div>
  );
}

function ModelButton({ situation }: { situation: Situation }) {
  const id = modelInUse(situation);
  const name = id.slice(id.indexOf("/") + 1);
  const scripted = isScripted(id);
  const label = name ? t("Model: {0}", id) : t("Select Model");
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

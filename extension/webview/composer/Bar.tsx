// The bar under the composer's text: context, mode, model, stop and send.

import { type Approvals, isScripted, type Mode, modelInUse, type Situation } from "../../src/pure/chat/panel";
import { post } from "../base/api";
import { Menu } from "../base/Menu";
import { Icon, IconButton } from "../base/parts";
import { t } from "../base/words";

const MODES: readonly Mode[] = ["act", "plan", "ask"];
const MODE_ICONS: Record<Mode, string> = { act: "tools", plan: "checklist", ask: "comment-discussion" };
const modeWords = (): Record<Mode, [name: string, what: string]> => ({
  act: [t("Act"), t("Edits files and runs commands, and asks first")],
  plan: [t("Plan"), t("Looks around and proposes a plan; changes nothing")],
  ask: [t("Ask"), t("Answers questions; changes nothing")],
});

const LEVELS: readonly Approvals[] = ["ask", "edits", "sandbox"];
const LEVEL_ICONS: Record<Approvals, string> = { ask: "shield", edits: "edit", sandbox: "package" };
const levelWords = (): Record<Approvals, [name: string, what: string]> => ({
  ask: [t("Ask first"), t("Asks before edits and commands that change something")],
  edits: [t("Allow edits"), t("Makes edits at once; asks before commands")],
  sandbox: [t("Allow sandbox"), t("Also runs commands in the sandbox without network; asks for everything else")],
});

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
      <IconButton icon="mention" label={t("Add context")} onClick={onPoint} />
      <ModeMenu mode={situation.mode} />
      {situation.mode === "act" && <ApprovalsMenu approvals={situation.approvals ?? "ask"} />}
      <ModelButton situation={situation} />
      <span class="grow" />
      {working && (
        <IconButton icon="debug-stop" class="stop" label={t("Stop (Esc)")} onClick={() => post({ type: "stop" })} />
      )}
      {(!working || written) && (
        <IconButton
          icon="arrow-up"
          class="send"
          label={working ? t("Send to the work under way (Enter)") : t("Send (Enter)")}
          disabled={!written}
          onClick={onSend}
        />
      )}
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

function ApprovalsMenu({ approvals }: { approvals: Approvals }) {
  const words = levelWords();
  const options = LEVELS.map((id) => ({ id, icon: LEVEL_ICONS[id], name: words[id][0], detail: words[id][1] }));
  return (
    <Menu
      label={t("Permissions")}
      options={options}
      value={approvals}
      onChoose={(id) => post({ type: "setApprovals", approvals: id as Approvals })}
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

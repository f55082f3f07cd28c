// What stands above and below the conversation: the server's state, missing trust, a run that was interrupted.

import type { ServerState } from "../src/pure/chat/panel";
import { post } from "./base/api";
import { Icon } from "./base/parts";
import { t } from "./base/words";
import type { PanelState } from "./store";

type Command = "daiku.restartServer" | "daiku.showLog" | "workbench.trust.manage";
const run = (command: Command) => () => post({ type: "command", command });

export function Banner({ situation: { server, trusted } }: { situation: PanelState["situation"] }) {
  if (server.phase === "failed") return <Failed server={server} />;
  if (trusted) return <Starting server={server} />;
  return (
    <div class="banner" role="status">
      <Icon name="shield" />
      <div>
        <p>
          {t(
            "This workspace is not trusted. You can chat, but Daiku does not run commands or read workspace settings.",
          )}
        </p>
        <button type="button" class="link" onClick={run("workbench.trust.manage")}>
          {t("Manage Trust")}
        </button>
      </div>
    </div>
  );
}

function Failed({ server }: { server: ServerState }) {
  return (
    <div class="banner error" role="alert">
      <Icon name="error" />
      <div>
        <p>{server.message || t("The Daiku server is not running.")}</p>
        {server.hint && <p class="dim">{server.hint}</p>}
        <div class="buttons">
          <button type="button" class="secondary" onClick={run("daiku.restartServer")}>
            {t("Try Again")}
          </button>
          <button type="button" class="link" onClick={run("daiku.showLog")}>
            {t("Show Log")}
          </button>
        </div>
      </div>
    </div>
  );
}

function Starting({ server }: { server: ServerState }) {
  if (server.phase !== "installing" && server.phase !== "starting") return null;
  const words = server.phase === "installing" ? t("Setting up Daiku (first time only)…") : t("Starting…");
  return (
    <div class="banner quiet" role="status">
      <Icon name="loading" spin />
      <p>{server.message || words}</p>
    </div>
  );
}

/** A run whose end was not seen can be resumed. */
export function Interrupted({ state: { view, working, session } }: { state: PanelState }) {
  const { run } = view;
  if (working || run?.status !== "open" || !session) return null;
  const paused = session.status === "paused";
  return (
    <div class="banner interrupted" role="status">
      <Icon name={paused ? "debug-pause" : "debug-disconnect"} />
      <p>{paused ? t("This run is paused.") : t("This run was interrupted.")}</p>
      <button type="button" class="primary" onClick={() => post({ type: "resume", run: run.id })}>
        {t("Resume")}
      </button>
    </div>
  );
}

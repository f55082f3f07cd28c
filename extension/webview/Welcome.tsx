// The first thing a person sees: what to ask for, and what is missing before it can be asked.

import { PROVIDERS_BY_NEED } from "../src/contract.gen";
import { isScripted, modelInUse, type Situation } from "../src/pure/chat/panel";
import { post } from "./base/api";
import { Icon } from "./base/parts";
import { oneOf, t } from "./base/words";

const examples = (): [icon: string, text: string][] => [
  ["compass", t("Explain how this project is structured and where to start reading")],
  ["beaker", t("Run the tests and fix any failures")],
  ["sparkle", t("Add a test for the current file")],
];

export function Welcome({ situation, onExample }: { situation: Situation; onExample: (text: string) => void }) {
  const chosen = modelInUse(situation);
  // What would only wait, or come to nothing, is not offered yet; the banner says what is under way.
  const { phase } = situation.server;
  const early = phase === "installing" || phase === "failed";
  const disconnected = situation.models !== undefined && chosen === "";
  return (
    <div class="welcome">
      <div class="mark" aria-hidden="true">
        大工
      </div>
      <h1>{t("What do you want to build?")}</h1>
      <p class="dim">
        {t(
          "Daiku reads your code, makes plans, edits files, runs commands, and fixes problems. By default, it asks before it makes changes.",
        )}
      </p>
      {disconnected ? (
        <Connect />
      ) : (
        <ul class="examples">
          {examples().map(([icon, text]) => (
            <li key={text}>
              <button type="button" disabled={early} onClick={() => onExample(text)}>
                <Icon name={icon} />
                <span>{text}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {isScripted(chosen) && (
        <p class="notice info">
          <Icon name="info" />
          <span>
            {t("A demo script is standing in for the model. Connect a model to work on your own requests.")}{" "}
            <button
              type="button"
              class="link inline"
              onClick={() => post({ type: "command", command: "daiku.setApiKey" })}
            >
              {t("Connect a Model")}
            </button>
          </span>
        </p>
      )}
    </div>
  );
}

function Connect() {
  return (
    <section class="card connect" aria-label={t("Connect a Model")}>
      <strong>{t("Connect a Model")}</strong>
      <p class="dim">
        {t(
          "Use an API key for {0}, a local model in {1} (no key needed), or a model from your editor.",
          oneOf(PROVIDERS_BY_NEED.key),
          oneOf(PROVIDERS_BY_NEED.server),
        )}
      </p>
      <div class="buttons">
        <button type="button" class="primary" onClick={() => post({ type: "command", command: "daiku.setApiKey" })}>
          {t("Set API Key")}
        </button>
        <button type="button" class="secondary" onClick={() => post({ type: "command", command: "daiku.selectModel" })}>
          {t("Select Model")}
        </button>
      </div>
    </section>
  );
}

// The first thing a person sees: what to ask for, and what is missing before it can be asked.

import { PROVIDERS_BY_NEED } from "../src/contract.gen";
import { isScripted, modelInUse, type Situation } from "../src/pure/chat/panel";
import { post } from "./base/api";
import { Icon } from "./base/parts";
import { oneOf, t } from "./base/words";

const examples = (): [icon: string, text: string][] => [
  ["compass", t("Explain how this project is built and where to start reading")],
  ["beaker", t("Run the tests and repair what fails")],
  ["sparkle", t("Add a test for the file that is open")],
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
      <h1>{t("What shall we build?")}</h1>
      <p class="dim">
        {t("Daiku reads your code, plans, edits, runs commands and repairs. It asks before it changes anything.")}
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
            {t("A script is playing the model. Connect a real one to work on your own requests.")}{" "}
            <button
              type="button"
              class="link inline"
              onClick={() => post({ type: "command", command: "daiku.setApiKey" })}
            >
              {t("Connect a model")}
            </button>
          </span>
        </p>
      )}
    </div>
  );
}

function Connect() {
  return (
    <section class="card connect" aria-label={t("Connect a model")}>
      <strong>{t("Connect a model")}</strong>
      <p class="dim">
        {t(
          "With a key of {0}; with a local model in {1}, which needs none; or with a model of your editor.",
          oneOf(PROVIDERS_BY_NEED.key),
          oneOf(PROVIDERS_BY_NEED.server),
        )}
      </p>
      <div class="buttons">
        <button type="button" class="primary" onClick={() => post({ type: "command", command: "daiku.setApiKey" })}>
          {t("Set API key")}
        </button>
        <button type="button" class="secondary" onClick={() => post({ type: "command", command: "daiku.selectModel" })}>
          {t("Select model")}
        </button>
      </div>
    </section>
  );
}

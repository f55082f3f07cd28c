// What the person decided on changes, and what bringing files back has made of them.

import type { Restored, Review } from "../../src/contract.gen";
import { showOutput } from "../../src/pure/text/ansi";
import { post } from "../base/api";
import { Icon, PathLink } from "../base/parts";
import { t } from "../base/words";

/** What the person decided on changes. */
export function ReviewLine({ review: { decision, path, hunks } }: { review: Review }) {
  const accepted = decision === "accept";
  const words =
    hunks === 1
      ? accepted
        ? t("Accepted 1 change in")
        : t("Rejected 1 change in")
      : hunks
        ? accepted
          ? t("Accepted {0} changes in", hunks)
          : t("Rejected {0} changes in", hunks)
        : accepted
          ? t("Accepted")
          : t("Rejected");
  return (
    <p class={`notice decided ${decision}`}>
      <Icon name={accepted ? "check" : "discard"} />
      <span>
        {words} <PathLink path={path} />
      </span>
    </p>
  );
}

/** What bringing files back has made of them. */
export const restoredWords = (files: number, back: boolean): string => {
  if (back)
    return files === 1
      ? t("Reapplied Daiku's changes to 1 file.")
      : t("Reapplied Daiku's changes to {0} files.", files);
  return files === 1 ? t("Reverted 1 file.") : t("Reverted {0} files.", files);
};

interface RestoredProps {
  restored: Restored;
  back: boolean;
  redo: string | undefined;
}

/** Files that were brought back, and what could not be: what commands have done. */
export function RestoredCard({ restored: { files, cannotUndo, redo: own }, back, redo }: RestoredProps) {
  return (
    <section class="card restored" aria-label={back ? t("Reapplied") : t("Undone")}>
      <header>
        <Icon name={back ? "redo" : "discard"} />
        <strong>{restoredWords(files.length, back)}</strong>
        <span class="grow" />
        {own !== undefined && own === redo && (
          <button type="button" class="link" onClick={() => post({ type: "command", command: "daiku.redo" })}>
            {t("Redo")}
          </button>
        )}
      </header>
      {cannotUndo.length > 0 && (
        <div class="stays">
          <p>
            <Icon name="warning" /> {t("The effects of these commands were not undone:")}
          </p>
          <ul>
            {cannotUndo.map(({ command, exitCode, time }) => (
              <li key={`${time}${command}`}>
                <code>{showOutput(command)}</code>
                {exitCode !== undefined && <span class="dim">{t("exit code {0}", exitCode)}</span>}
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

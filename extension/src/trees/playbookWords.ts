// What the tree "Playbook" calls things: sections, changes, notes, verdicts.

import type { BulletObservation, PlaybookDelta as Delta, PlaybookBullet } from "../contract.gen";
import { t } from "../l10n";

/** The sections that the server knows; a person may have named others, which stand as they were written. */
const sections = (): Record<string, string> => ({
  project_conventions: t("Project conventions"),
  build_and_test_commands: t("Build and test commands"),
  tool_usage: t("Tool usage"),
  code_patterns_and_apis: t("Code patterns and APIs"),
  common_mistakes: t("Common mistakes"),
  review_feedback: t("Review feedback"),
  environment: t("Environment"),
});

/** However a person spelt it, it is the same section. */
export const sectionKey = (section: string): string => section.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "_");

export const sectionWords = (section: string): string =>
  sections()[sectionKey(section)] ?? section.replaceAll("_", " ");

const kinds = (): Record<Delta["type"], string> => ({
  add: t("new"),
  update: t("edited"),
  merge: t("merged"),
  tag: t("rated"),
  remove: t("disabled"),
  restore: t("enabled"),
});

/** "new", or "edited: com-00003"; without the id `of`, where all is about that lesson. */
export function changeWords({ type, tag, bulletId, bulletIds }: Delta, of = ""): string {
  const words = type === "tag" && tag ? verdictWords()[tag] : kinds()[type];
  const ids = [bulletId, ...bulletIds].filter((id) => id && id !== of).join(", ");
  return ids ? `${words}: ${ids}` : words;
}

export const statusWords = (): Record<Delta["status"], string> => ({
  proposed: t("pending review"),
  applied: "",
  rejected: t("rejected"),
  undone: t("undone"),
});

export const verdictWords = (): Record<BulletObservation["verdict"], string> => ({
  helpful: t("Helpful"),
  harmful: t("Harmful"),
  neutral: t("No effect"),
});

export const doubtWords = (): Record<Delta["doubts"][number], string> => ({
  tainted: t("Learned from a run that read untrusted external content."),
  rejected: t("Rejected before, then learned again from later runs."),
});

export const countWords = ({ helpful, harmful }: PlaybookBullet): string =>
  t("Runs helped: {0}, harmed: {1}", helpful, harmful);

const reasons = (): Record<string, string> => ({
  not_cited: t("not cited in a response"),
  nothing_shown: t("no evidence"),
  run_cancelled: t("the run was canceled"),
  run_failed: t("the run failed"),
  run_limited: t("the run reached a limit"),
  run_looped: t("the run looped without progress"),
  unclear: t("inconclusive"),
  command_passed: t("its command passed"),
  command_failed: t("its command failed"),
  command_missing: t("the command does not exist"),
  command_replaced: t("another command passed instead"),
  command_refused: t("its command was denied"),
  acceptance_met: t("acceptance criteria met"),
  checks_passed: t("checks passed"),
  edits_kept: t("its edits were kept"),
  edits_accepted: t("its edits were accepted"),
  edits_refused: t("its edits were denied"),
  edits_rejected: t("its edits were rejected"),
  edits_restored: t("its edits were undone"),
  praised: t("the user praised it"),
  objected: t("the user objected"),
  model_judged: t("a model judged it to be the cause of a problem"),
  command_before: t("another command had to run first"),
  passed_twice: t("it passed in two runs"),
  rejected: t("the user rejected an edit"),
  corrected: t("the user corrected it"),
  insight: t("a model's conclusion"),
  duplicates: t("duplicate lessons"),
});

/** Why a run showed that, or why a change is proposed: a word of the server's, else somebody's own words. */
export const reasonWords = (reason: string): string => reasons()[reason] ?? reason;

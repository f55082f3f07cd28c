// A report: what was done, each claim with its proofs; a claim without one is marked.

import type { Proof, Report } from "../../src/contract.gen";
import { post } from "../base/api";
import { Card, Icon } from "../base/parts";
import { reveal } from "../base/reveal";
import { t } from "../base/words";
import { Markdown } from "../text/Markdown";

/** The diff of a checkpoint's edit. */
export type DiffOf = (checkpointId: string) => string | undefined;

export function ReportCard({ report, diffOf }: { report: Report; diffOf: DiffOf }) {
  return (
    <Card kind="report" label={t("Report")}>
      <header>
        <Icon name="note" />
        <strong>{t("Report")}</strong>
      </header>
      {report.text && (
        <div class="report-text">
          <Markdown text={report.text} done />
        </div>
      )}
      {report.claims.length > 0 && (
        <ul class="claims">
          {report.claims.map((claim) => {
            const passed = claim.proofs.length > 0 && claim.proofs.every((proof) => proof.ok);
            const ok = passed && claim.proofs.some((proof) => remarksOf(proof).length === 0);
            const failed = claim.proofs.length > 0 && !passed;
            const words = ok ? t("verified") : failed ? t("contradicted") : t("not verified");
            return (
              <li key={claim.text} class={ok ? "ok" : failed ? "failed" : "bare"}>
                <span class="status" role="img" aria-label={words} title={words}>
                  <Icon name={ok ? "pass-filled" : failed ? "error" : "question"} />
                </span>
                <div>
                  <span>{claim.text}</span>
                  <span class="proofs">
                    {claim.proofs.map((proof) => (
                      <ProofLink key={`${proof.kind}${proof.ref}${proof.subject}`} proof={proof} diffOf={diffOf} />
                    ))}
                    {claim.proofs.length === 0 && <span class="dim">{t("not verified")}</span>}
                  </span>
                </div>
              </li>
            );
          })}
        </ul>
      )}
    </Card>
  );
}

const ICONS: Record<Proof["kind"], string> = {
  exit_code: "terminal",
  diagnostics: "warning",
  diff: "diff",
  person: "account",
};

/** What takes from a proof's worth; the record of an older conversation says nothing of it. */
const remarksOf = (proof: Partial<Proof>): Proof["remarks"] => proof.remarks ?? [];

const remarkWords = (remark: Proof["remarks"][number]) =>
  remark === "passed_before"
    ? t("also passed before the changes")
    : remark === "no_tests"
      ? t("no tests were run")
      : t("the changes modified the check itself");

function ProofLink({ proof, diffOf }: { proof: Proof; diffOf: DiffOf }) {
  const { kind, subject, ref, value } = proof;
  const open = () => {
    const diff = kind === "diff" ? diffOf(ref) : undefined;
    if (diff) post({ type: "openDiff", path: subject, diff });
    else if (kind === "exit_code") reveal(ref);
    else if (subject) post({ type: "openFile", path: subject });
  };
  const said =
    kind === "exit_code"
      ? t("exit code {0}", value)
      : kind === "diagnostics"
        ? value === "0" || (proof.ok && !value)
          ? t("no problems")
          : t("{0} problems", value)
        : value.replace("-", "−");
  return (
    <button type="button" class={`proof ${proof.ok ? "ok" : "failed"}`} onClick={open}>
      <Icon name={ICONS[kind]} />
      <span class="ellipsis">{subject || t("Workspace")}</span>
      <span class="dim">{[said, ...remarksOf(proof).map(remarkWords)].join(", ")}</span>
    </button>
  );
}

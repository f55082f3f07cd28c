"""Classify what a report's sentences claim, and find the recorded proofs that support each claim."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

from daiku.core.proof.check_strength import is_test_command, tests_ran
from daiku.core.proof.evidence import CANNOT_RUN, Evidence
from daiku.core.text.patterns import lazy
from daiku.domain.work.handovers import Claim, Proof, Report
from daiku.texts.text import Text

Kind = Literal["tests", "checked", "deployed", "fixed", "works", "changed"]
"""Tests pass; a check, a build, a linter passes; it is out in the world; a fault is gone; all is well; files are changed."""

_SAID: Mapping[Kind, tuple[str, ...]] = MappingProxyType(
    {
        "tests": (
            r"\btest(?:s|ed|ing| suite| cases?)?\b.{0,60}?\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?|ok|run|ran|fine|clean)\b",
            r"\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?|fully|well|thoroughly)\b.{0,40}?\btest(?:s|ed| suite| cases?)?\b",
            r"\btested\b|100\s*%\s*coverage",
            r"テスト.{0,30}?(?:合格|通|成功|パス|緑|完了|済)",
        ),
        "checked": (
            r"\b(?:checks?|builds?|compil\w+|lint\w*|type.?checks?|ci|pipeline)\b.{0,40}?\b(?:pass\w*|green|succe\w+|clean|fine|ok)\b",
            r"\b(?:verified|validated|proven|proved|confirmed|double.?checked)\b",
            r"(?:確認|検証|ビルド).{0,20}?(?:済|合格|通|成功|しました)",
        ),
        "deployed": (
            r"\b(?:deployed|deploys|deployment|released|published|pushed|shipped|uploaded|rolled out|went live|is live)\b",
            r"\b(?:in production|merged|launched|installed)\b|デプロイ|公開|リリース|本番|プッシュ|マージ|インストール",
        ),
        "fixed": (
            r"\b(?:fix(?:ed|es)|repaired|resolv(?:ed|es)|solved|mended|patched|corrected|cured|eliminated|closed the)\b",
            r"修正|直(?:し|り)|解決",
        ),
        "works": (
            r"(?:\b(?:everything|all(?: of)?(?: (?:it|this|them|steps|the work|requirements))?|it|the (?:\w+ )?(?:work|task|project|feature|app|application|system|code|program|server|site|plan))\b.{0,30}?\b(?:works?|working|done|complete[ds]?|finished|ready|perfect\w*|fine|correct\w*|functional|successful\w*|secure|flawless\w*|as expected|implemented)\b)",
            r"\b(?:successfully|flawlessly|perfectly|production.?ready|fully (?:functional|working|implemented))\b",
            r"\b(?:no|zero|0|without)(?: any)?(?: \w+)? (?:bugs|errors|problems|issues|failures)\b|\bbug.?free\b|\bworks? (?:now|as|well|correctly|fine)\b",
            r"^(?:all )?(?:is )?(?:done|finished|complete|set|good)\b[.!]*$",
            r"(?:すべて|全て|全部|完全に|正しく).{0,20}?(?:動|完了|終|でき|成功|済)|動作(?:し|する)|完了しました|完成",
        ),
        "changed": (
            r"\b(?:added|adds|wrote|written|created|implemented|changed|updated|edited|modified|refactored|removed|deleted)\b",
            r"\b(?:renamed|moved|replaced|rewrote|introduced|improved|optimi[sz]ed|documented)\b",
            r"(?:追加|作成|変更|更新|削除|実装|書き換え|改善)(?:し|さ|済|を)",
        ),
    }
)
_KINDS: Mapping[Kind, re.Pattern[str]] = {
    kind: lazy("|".join(each), re.IGNORECASE) for kind, each in _SAID.items()
}
_NOT = lazy(
    r"\b(?:not|never|cannot|nothing|nobody|none|\w+n't|fail(?:s|ed|ing|ure)?|missing|todo|should|would|could|may|might|if|to be)\b"
    r"|\bun(?:tested|verified|finished|proven|checked)\b|\b(?:asked|wanted|requested|still open|left open|left to do)\b",
    re.IGNORECASE,
)
_NOT_JA = lazy(r".{0,8}?(?:ません|ない|なかった|未|失敗)")
_BROKEN = lazy(r"\b(?:fail(?:s|ed|ing)?|broken|error)\b|失敗", re.IGNORECASE)
_ACTS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = tuple(
    (lazy(said, re.IGNORECASE), lazy(command, re.IGNORECASE))
    for said, command in (
        (r"push|プッシュ", r"\bpush\b"),
        (r"merged|マージ", r"\bmerge\b|\bpull\b"),
        (r"install|インストール", r"\binstall\b|\badd\b|\bsync\b"),
        (r"upload", r"\bupload\b|\bscp\b|\brsync\b|\bcp\b|\bsync\b|\bpush\b|\bput\b"),
        (r"publish|releas|公開|リリース", r"\bpublish\b|\brelease\b|\bupload\b|\bdeploy\b|\btag\b"),
        (r"deploy|ship|roll|live|production|launch|デプロイ|本番", r"\bdeploy\w*\b|\bapply\b|\bupgrade\b|\brollout\b|\bup\b|\brelease\b|\bpublish\b"),
    )
)  # fmt: skip
_SENTENCE = lazy(r"(?<=[.!?])\s+|(?<=[。！？])\s*|\n+|;\s+")
_COUNT = lazy(
    r"\b(\d{1,7})\s+(?:\w+\s+){0,2}tests?\b|テスト.{0,4}?(\d{1,7})\s*件|(\d{1,7})\s*件.{0,6}?テスト",
    re.IGNORECASE,
)
_TOKEN = lazy(r"[\w./-]*[\w/-]")
_COMMON = frozenset(
    {
        "the",
        "and",
        "with",
        "for",
        "now",
        "that",
        "this",
        "are",
        "not",
        "has",
        "have",
        "was",
        "all",
        "its",
        "from",
        "into",
        "new",
    }
)


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, each with its end mark."""
    return tuple(part.strip() for part in _SENTENCE.split(text) if part.strip())


def claim_kinds(sentence: str) -> frozenset[Kind]:
    """What a sentence claims to be so; empty for one that claims nothing, or says that it is not so."""
    plain = re.sub(r"`[^`]*`|“[^”]*”|「[^」]*」", " x ", sentence)
    return frozenset(
        kind
        for kind, pattern in _KINDS.items()
        if any(not _denied(plain, m) for m in pattern.finditer(plain))
    )


def _denied(sentence: str, found: re.Match[str]) -> bool:
    """Whether what was found is said not to be so: in it, before it in its clause, or, as in Japanese,
    at once behind it."""
    clause = re.split(r"[,;:、—]|\bbut\b|\band\b", sentence[: found.start()])[-1]
    return bool(_NOT.search(clause + found[0]) or _NOT_JA.match(sentence[found.end() : found.end() + 12]))


def fitting_proofs(
    sentence: str, proofs: Iterable[Proof], done: Evidence, *, finished: bool = True
) -> tuple[Proof, ...]:
    """Those of `proofs` that show what a sentence claims, by what they are and not by what is said of
    them: none where one of its claims is shown by nothing. With `finished` false no sentence can
    claim that all is well."""
    good = tuple(proof for proof in proofs if proof.ok)
    claimed = claim_kinds(sentence)
    if not claimed:
        return tuple(proof for proof in proofs if _about(sentence, proof))
    shown = {kind: _shows(kind, sentence, good, done, finished=finished) for kind in claimed}
    if not all(shown.values()):
        return ()
    return tuple(dict.fromkeys(proof for each in shown.values() for proof in each))


def _shows(
    kind: Kind, sentence: str, good: tuple[Proof, ...], done: Evidence, *, finished: bool
) -> tuple[Proof, ...]:
    ran = tuple(proof for proof in good if proof.kind == "exit_code" and "no_tests" not in proof.remarks)
    seen = tuple(proof for proof in good if proof.kind in ("diagnostics", "person"))
    diffs = tuple(proof for proof in good if proof.kind == "diff")
    match kind:
        case "tests":
            return _tests(sentence, ran, done, finished=finished)
        case "checked":
            return (*ran, *seen)
        case "deployed":
            wanted = [command for said, command in _ACTS if said.search(sentence)]
            return tuple(p for p in ran if all(c.search(p.subject) for c in wanted)) if wanted else ()
        case "fixed":
            return (*diffs, *ran, *seen) if diffs and (ran or seen) else ()
        case "works":
            return (*ran, *seen) if finished else ()
        case "changed":
            named = tuple(proof for proof in diffs if _about(sentence, proof))
            return named or (() if _names_a_file(sentence) else diffs)


def _tests(sentence: str, ran: tuple[Proof, ...], done: Evidence, *, finished: bool) -> tuple[Proof, ...]:
    tests = tuple(proof for proof in ran if is_test_command(proof.subject))
    failing = any(
        is_test_command(p.subject) and not p.ok and p.value not in map(str, CANNOT_RUN)
        for p in done.proofs
        if p.kind == "exit_code"
    )
    every = re.search(r"\b(?:all|every|whole|entire|full)\b|すべて|全て|全部", sentence, re.IGNORECASE)
    if failing or (every and not finished):
        return ()
    found = _COUNT.search(sentence)
    if found is None:
        return tests
    outputs = {command.call_id: command.output for command in done.commands}
    number = int(next(each for each in found.groups() if each))
    return tuple(proof for proof in tests if tests_ran(outputs.get(proof.ref, "")) == number)


def _about(sentence: str, proof: Proof) -> bool:
    """Whether a sentence and a proof name the same thing: a file, a program, a word of the command."""
    mine = {t.lower().rpartition("/")[2] for t in _TOKEN.findall(sentence)}
    its = {t.lower().rpartition("/")[2] for t in _TOKEN.findall(proof.subject)}
    return any(len(token) > 2 and token not in _COMMON for token in mine & its)


def _names_a_file(sentence: str) -> bool:
    return re.search(r"\b[\w-]+\.(?!\s)[a-z]\w{0,4}\b", sentence, re.IGNORECASE) is not None


# ---- a report, judged


def judge_claim(claim: Claim, done: Evidence, *, finished: bool) -> Claim:
    """Return a claim with the proofs that support it; `unfit` if none of those it names do."""
    proofs = fitting_proofs(claim.text, claim.proofs, done, finished=finished)
    against = tuple(proof for proof in claim.proofs if not proof.ok)
    told = bool(against) and _BROKEN.search(claim.text) is not None
    unfit = bool(claim.proofs) and not proofs and not told
    return claim.model_copy(update={"proofs": proofs or against, "unfit": claim.unfit or unfit})


def split_claims(text: str, done: Evidence, *, finished: bool) -> tuple[str, tuple[Claim, ...]]:
    """Split a report's free text into the text without unproven claims, and those claims."""
    kept: list[str] = []
    unshown: list[str] = []
    for line in text.split("\n"):
        parts = sentences(line)
        wrong = [
            p for p in parts if claim_kinds(p) and not fitting_proofs(p, done.proofs, done, finished=finished)
        ]
        rest = line if not wrong else " ".join(part for part in parts if part not in wrong)
        if rest.strip() or not wrong:
            kept.append(rest)
        unshown += wrong
    shown = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return shown, tuple(Claim(text=Text(part), unfit=True) for part in dict.fromkeys(unshown))


def check_report(report: Report, done: Evidence, *, finished: bool) -> Report:
    """Check a model's report against the records: remove unproven claims from its text and attach to each
    claim the proofs that support it. A report made from the records is returned unchanged."""
    if report.from_records:
        return report
    rest, said = split_claims(report.text, done, finished=finished)
    claims = tuple(judge_claim(claim, done, finished=finished) for claim in report.claims)
    known = {claim.text for claim in claims}
    return report.model_copy(
        update={
            "text": Text(rest),
            "claims": (*claims, *(claim for claim in said if claim.text not in known)),
        }
    )

"""What an adaptation is going to do: which changes are tried, on which runs on record, at what likely cost."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.core.playbook.gate.budget import estimated, trials_of
from daiku.core.playbook.gate.heldout import is_held_out, judges_of
from daiku.core.playbook.gate.rule import Rule, bound_at, least_cases, shows_more
from daiku.core.playbook.gate.with_change import may_be_tried
from daiku.core.playbook.refused import Refused
from daiku.domain.playbook import Delta
from daiku.domain.trials import Case
from daiku.playbook.gate.arms import arms_of
from daiku.playbook.gate.spending import cut_off
from daiku.sdk.adapting.gate import Gate
from daiku.sdk.adapting.report import AdaptationPlan, Candidate, RecordedCase, WhyNotTried


async def planned(gate: Gate, rule: Rule, *, offline: bool = False, dry: bool = False) -> AdaptationPlan:
    """What there is to try now. With `offline` what the sessions that teach hold is learnt first, but not where it is a
    `dry` plan, which writes nothing. Raises DaikuError."""
    cases = await gate.cases()
    learnt = gate.learn_anew() if offline and not dry else 0
    waiting = [each for store in gate.stores.values() for each in store.deltas("proposed")]
    waiting.sort(key=lambda each: len(each.tried))  # so that each gets its turn where the budget is small
    candidates = tuple([await _candidate(gate, each, cases, rule) for each in waiting])
    runs = {each.run: each for each in cases}
    tried = [runs[name] for each in candidates if each.why_not is None for name in each.runs]
    return AdaptationPlan(
        rounds=rule.rounds,
        most_cases=rule.cases,
        cases=tuple(_recorded(gate, each) for each in cases),
        candidates=candidates,
        trials=trials_of(tried, rule.rounds),
        estimated_cost=estimated(tried, rule.rounds),
        estimated_tokens=_tokens(tried, rule.rounds),
        teaching=len(gate.teaching()) if offline else 0,
        learnt=learnt,
        cut_off=cut_off(gate.journal.database),
    )


async def _candidate(gate: Gate, delta: Delta, cases: Sequence[Case], rule: Rule) -> Candidate:
    if not may_be_tried(delta):
        return _not_tried(delta, "counters" if delta.type == "tag" else "doubted")
    arms = arms_of(gate.stores, delta, gate.settings, gate.finder)
    if isinstance(arms, Refused):
        return _not_tried(delta, "impossible")
    judges: list[Case] = []
    for case in judges_of(delta, cases, gate.questions(delta), gate.original):
        if len(judges) == rule.cases:
            break
        if (await arms.told(case.question)).differs:
            judges.append(case)
    bound = bound_at(len(delta.tried) + 1)
    runs = tuple(each.run for each in judges)
    why_not: WhyNotTried | None = None
    if len(runs) < least_cases(bound):
        why_not = "too_few"
    elif not shows_more(runs, delta.tried):
        why_not = "nothing_new"
    return Candidate(
        delta=delta,
        runs=runs,
        trials=trials_of(judges, rule.rounds) if why_not is None else 0,
        estimated_cost=estimated(judges, rule.rounds) if why_not is None else 0.0,
        estimated_tokens=_tokens(judges, rule.rounds) if why_not is None else 0,
        bound=bound,
        least=least_cases(bound),
        why_not=why_not,
    )


def _tokens(cases: Sequence[Case], rounds: int) -> int:
    """What trials of these cases will likely take, with the change and without it."""
    return sum(each.tokens for each in cases) * rounds * 2


def _not_tried(delta: Delta, why: WhyNotTried) -> Candidate:
    return Candidate(delta=delta, why_not=why)


def _recorded(gate: Gate, case: Case) -> RecordedCase:
    return RecordedCase(
        run=case.run,
        session=case.session,
        question=case.question,
        held_out=is_held_out(gate.original(case.session, case.run)[0]),
        cost=case.cost,
        tokens=case.tokens,
    )

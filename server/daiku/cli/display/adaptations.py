"""An adaptation as lines: the rule, what is going to be tried and what it costs, each trial, what became of each change."""

from __future__ import annotations

from collections.abc import Iterator

from daiku.cli.display.term import Colour, Terminal, clip, columns, safe, to_the_minute
from daiku.domain.playbook import Tried
from daiku.sdk.adapting.report import Adaptation, AdaptationPlan, Candidate, Outcome, Result, TrialMade
from daiku.texts.terminal import localize, say

COLOURS: dict[Result, Colour] = {"applied": "green", "rejected": "red", "waits": "yellow", "not_tried": "dim"}
TEXT = 100


def plan_lines(plan: AdaptationPlan, max_cost: float | None, out: Terminal) -> Iterator[str]:
    """The rule first, then what there is, and what it will cost."""
    for cut in plan.cut_off:
        words = say("adapt.cut_off", when=to_the_minute(cut.begun_at), cost=_usd(cut.spent))
        yield out.paint(" ".join((words, say("adapt.cut_off_one") if cut.unknown else "")).rstrip(), "yellow")
    yield say("adapt.rule", cases=plan.most_cases, rounds=plan.rounds)
    held_out = sum(each.held_out for each in plan.cases)
    yield say("adapt.cases", count=len(plan.cases), held_out=held_out)
    if plan.teaching:
        yield say("adapt.taught", sessions=plan.teaching, learnt=plan.learnt)
    if not plan.candidates:
        yield say("playbook.nothing_waits")
    for each in plan.candidates:
        yield from _candidate(each, out)
    if plan.trials:
        cost = _likely(plan.estimated_cost, plan.estimated_tokens)
        likely = say("adapt.cost", trials=plan.trials, cost=cost)
        yield likely if max_cost is None else f"{likely} {say('adapt.most', most=_usd(max_cost))}"


def case_lines(plan: AdaptationPlan, out: Terminal) -> Iterator[str]:
    """The runs on record that can be done again, those that judge and those that teach."""
    judges, teaches = say("adapt.judges"), say("adapt.teaches")
    width = max(columns(judges), columns(teaches))
    for each in plan.cases:
        side = judges if each.held_out else teaches
        side = out.paint(side + " " * (width - columns(side)), "dim")
        tokens = say("adapt.tokens", tokens=f"{each.tokens:,}")
        cost = _usd(each.cost) if each.cost or not each.tokens else tokens
        head = f"  {side}  {safe(each.session)}  {cost}  "
        taken = columns(safe(each.session)) + columns(cost) + width + 7
        left = max(20, out.width - taken) if out.live else TEXT
        yield head + clip(safe(each.question), left)


def _candidate(found: Candidate, out: Terminal) -> Iterator[str]:
    delta = found.delta
    kind = say(f"playbook.type.{delta.type}")
    name = safe(delta.bullet_id) if delta.bullet_id and delta.type != "add" else safe(delta.section)
    yield f"{out.paint(safe(delta.id), 'bold')}  {kind} {name}".rstrip()
    if delta.content:
        yield f"  {clip(safe(delta.content), out.width - 2 if out.live else TEXT)}"
    if found.why_not is not None:
        yield f"  {out.paint(_why_not(found), 'dim')}"
        return
    words = say(
        "adapt.candidate",
        cases=len(found.runs),
        trials=found.trials,
        cost=_likely(found.estimated_cost, found.estimated_tokens),
        bound=_share(found.bound),
    )
    yield f"  {words}"


def _why_not(found: Candidate) -> str:
    return say(f"adapt.why_not.{found.why_not}", cases=len(found.runs), least=found.least)


def trial_line(made: TrialMade, out: Terminal) -> str:
    """One trial that is over."""
    trial = made.trial
    end, colour = _end(trial.passed)
    why = clip(safe(localize(trial.why)), TEXT)
    side = say("adapt.with") if trial.arm == "with" else say("adapt.without")
    parts = [f"[{made.number}/{made.most}]", made.delta, safe(trial.case), side, out.paint(end, colour)]
    return " ".join([*parts, _usd(trial.cost), *([out.paint(why, "dim")] if why else [])])


def _end(passed: bool | None) -> tuple[str, Colour]:  # as a trial has it
    if passed is None:
        return say("adapt.untried"), "yellow"
    return (say("adapt.passed"), "green") if passed else (say("adapt.failed"), "red")


def result_lines(found: Adaptation, out: Terminal) -> Iterator[str]:
    """What became of each change, and what was spent."""
    for each in found.outcomes:
        yield from _outcome(each, out)
    if found.ended != "done":
        why = safe(localize(found.why))
        yield out.paint(" ".join((say(f"adapt.ended.{found.ended}"), why)).rstrip(), "yellow")
    unknown = f" {say('adapt.unknown_cost')}" if found.unknown_cost else ""
    yield say("adapt.spent", trials=found.trials, cost=_usd(found.spent)) + unknown


def _outcome(found: Outcome, out: Terminal) -> Iterator[str]:
    if found.why_not is not None and found.why_not != "not_reached":
        return  # the plan said so
    word = out.paint(say(f"adapt.result.{found.result}"), COLOURS[found.result])
    yield f"{out.paint(safe(found.delta), 'bold')}  {word}  {safe(found.bullet)}".rstrip()
    if found.seen is not None:
        yield f"  {tried_text(found.seen)}"
    if found.message:
        yield f"  {safe(localize(found.message))}"


def tried_text(seen: Tried) -> str:
    """What trials showed of a change, in one line."""
    counts = say(
        "adapt.seen",
        better=seen.better,
        worse=seen.worse,
        same=seen.same,
        untried=seen.untried,
        chance=_share(seen.chance),
        bound=_share(seen.bound),
    )
    return f"{say(f'adapt.verdict.{seen.verdict}')} {counts}"


def _likely(cost: float, tokens: int) -> str:
    """What something will cost; tokens alone where nobody knows their price."""
    return _usd(cost) if cost or not tokens else say("adapt.no_price", tokens=f"{tokens:,}")


def _usd(cost: float) -> str:
    return f"${cost:.4f}"


def _share(chance: float) -> str:
    return f"{chance:.3g}"

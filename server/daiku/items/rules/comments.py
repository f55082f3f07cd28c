"""The comments of a work item: its progress, questions with how to answer, and what came of it (C2.3, C2.4, S2P.13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from daiku.dataclass import dataclass
from daiku.domain.messages import Usage
from daiku.domain.work.plans import Plan, Step
from daiku.items.rules.harmless import code, harmless, harmless_line
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, joined, render, text

MOST = 60_000
"""Characters of one comment; GitHub takes 65,536."""
MOST_STEPS = 100
Outcome = Literal["done", "failed", "stopped", "limit", "unverified", "paused"]
Standing = Literal["queued", "processing", "paused", "waiting", "done", "failed", "stopped"]
_STANDING: Mapping[Standing, str] = MappingProxyType(
    {
        "queued": "comment.queued",
        "processing": "comment.processing",
        "paused": "comment.is_paused",
        "waiting": "comment.waiting",
        "done": "comment.is_done",
        "failed": "comment.is_failed",
        "stopped": "comment.is_stopped",
    }
)
Changes = Literal["unknown", "none", "on_branch"]
_WORKING: frozenset[Standing] = frozenset({"queued", "processing", "waiting", "paused"})
_OUTCOMES: Mapping[Outcome, str] = MappingProxyType(
    {
        "done": "comment.done",
        "failed": "comment.failed",
        "stopped": "comment.stopped",
        "limit": "comment.limit",
        "unverified": "comment.unverified",
        "paused": "comment.paused",
    }
)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an item. `original`: ids of the steps of its first plan. `label`: its removal stops the work."""

    standing: Standing
    plan: Plan | None = None
    original: tuple[str, ...] = ()
    usage: Usage = Usage()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """End of an item. `words` are the model's own, `why` says what stopped it, `label` is the one that has it worked
    again, `asked_by` the account that is mentioned."""

    outcome: Outcome
    words: str = ""
    why: Text = Text("")
    changes: Changes = "unknown"
    request_url: str = ""
    label: str = ""
    asked_by: str = ""


def progress_comment(progress: Progress, language: str) -> str:
    """Render the comment that is edited in place: checklist, usage, and how to stop (S2P.10, S2P.13)."""
    title = text("comment.title" if progress.standing in _WORKING else "comment.title_over")
    said = joined("paragraphs", [title, *_plan(progress), *_foot(progress)])
    return bounded(render(said, language))


def question_comment(question: str, choices: Sequence[str], language: str) -> str:
    """What only a person can know, with how to answer (X.14)."""
    numbered = [Text(f"{number}. {harmless_line(choice)}") for number, choice in enumerate(choices, 1)]
    answer = text("comment.answer_choice") if numbered else text("comment.answer")
    parts = [text("comment.question"), Text(harmless(question)), joined("lines", numbered), answer]
    return bounded(render(joined("paragraphs", parts), language))


def approval_comment(preview: str, why: Text, language: str) -> str:
    """What Daiku may not do unasked, exactly as it would be done, with how to allow it."""
    shown = Text(harmless(f"~~~~~~~~\n{preview.replace('~~~~~~~~', '~ ~')}\n~~~~~~~~"))
    parts = [text("comment.approval", why=harmless_line(render(why, language))), shown, text("comment.allow")]
    return bounded(render(joined("paragraphs", parts), language))


def final_comment(ending: Ending, language: str) -> str:
    """What came of the item, and what can be done now; an ending at a limit is never told as done (C2.4)."""
    why = harmless_line(render(ending.why, language)) if ending.why else ""
    parts = [
        text("comment.told", name=ending.asked_by) if is_account(ending.asked_by) else "",
        text(_OUTCOMES[ending.outcome]),
        _changes(ending),
        text("comment.why", why=why) if why else "",
        harmless(ending.words),
        text("comment.review", url=ending.request_url) if ending.request_url else "",
        text("comment.again", label=code(ending.label)) if ending.label else "",
    ]
    return bounded(render(joined("paragraphs", parts), language))


def _changes(ending: Ending) -> Text:
    """Say that nothing was changed, or where the changes are if no request shows them."""
    match ending.changes:
        case "none" if ending.outcome in ("done", "limit", "unverified"):
            return text("comment.unchanged")
        case "on_branch" if (
            ending.outcome in ("failed", "limit", "unverified", "stopped") or not ending.request_url
        ):
            return text("comment.on_branch")
        case _:
            return Text("")


def bounded(comment: str) -> str:
    """A comment within what a forge takes; the words in it are bounded before, so this is the last resort."""
    return truncate_middle(comment, MOST - 200)


def is_account(name: str) -> bool:
    """Whether `name` can be the name of an account, and is safe to be mentioned."""
    return (
        0 < len(name) <= 255
        and name.isascii()
        and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
    )


def _plan(progress: Progress) -> list[Text]:
    plan = progress.plan
    if plan is None or not plan.steps:
        return [text("comment.no_plan")] if progress.standing in _WORKING else []
    first = [step for step in plan.steps if not progress.original or step.step_id in progress.original]
    later = [step for step in plan.steps if step not in first]
    done, total = plan.progress()
    complete = later and all(step.status == "completed" for step in first)
    return [
        text("comment.goal", goal=harmless_line(plan.goal or plan.name, 1000)),
        text("comment.plan_completed") if complete else text("comment.plan"),
        _checklist(first),
        text("comment.additional") if later else Text(""),
        _checklist(later),
        text("comment.progress", done=done, total=total, percent=100 * done // total),
    ]


def _checklist(steps: Sequence[Step]) -> Text:
    more = len(steps) - MOST_STEPS
    lines: list[str] = [_line(step) for step in steps[:MOST_STEPS]]
    return joined("lines", [*lines, text("comment.more_steps", count=more) if more > 0 else ""])


def _line(step: Step) -> Text:
    name = harmless_line(step.name)
    match step.status:
        case "completed":
            return Text(f"- [x] {name}")
        case "failed":
            return Text(f"- [ ] ❌ {name}")
        case "in_progress":
            return text("comment.step_now", name=name)
        case "pending":
            return Text(f"- [ ] {name}")


def _foot(progress: Progress) -> list[Text]:
    usage = progress.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    spent = text("comment.tokens", count=f"{tokens:,}")
    if usage.cost is not None:
        spent = text("comment.tokens_cost", count=f"{tokens:,}", cost=f"{usage.cost:.2f}")
    return [
        text("comment.status", status=text(_STANDING[progress.standing])),
        spent if tokens else Text(""),
        text("comment.to_stop", label=code(progress.label))
        if progress.standing in _WORKING and progress.label
        else Text(""),
    ]

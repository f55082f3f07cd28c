"""The comments of a work item: its progress, questions with how to answer, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from daiku.dataclass import dataclass
from daiku.domain.messages import Usage
from daiku.domain.work.plans import Plan, Step
from daiku.items.rules.harmless import neutralize, neutralize_line, to_inline_code
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, joined, render, text

MOST = 60_000
"""Maximum characters of one comment; GitHub accepts 65,536."""
MOST_STEPS = 100
"""Maximum number of plan steps in a comment."""
Outcome = Literal["done", "failed", "stopped", "limit", "unverified", "paused"]
ProgressStatus = Literal["queued", "processing", "paused", "waiting", "done", "failed", "stopped"]
_STATUS_TEXTS: Mapping[ProgressStatus, str] = MappingProxyType(
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
_WORKING: frozenset[ProgressStatus] = frozenset({"queued", "processing", "waiting", "paused"})
_OUTCOME_TEXTS: Mapping[Outcome, str] = MappingProxyType(
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
class ProgressReport:
    """Progress of an item.

    `original`: step ids of its first plan. `label`: removing it stops the work.
    """

    status: ProgressStatus
    plan: Plan | None = None
    original: tuple[str, ...] = ()
    usage: Usage = Usage()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an item.

    `words` is the model's own text, `why` the reason for stopping, `label` the one that orders the item
    again, `asked_by` the account to mention.
    """

    outcome: Outcome
    words: str = ""
    why: Text = Text("")
    changes: Changes = "unknown"
    request_url: str = ""
    label: str = ""
    asked_by: str = ""


def render_progress(progress: ProgressReport, language: str) -> str:
    """Render the comment that is edited in place: checklist, usage, and how to stop."""
    title = text("comment.title" if progress.status in _WORKING else "comment.title_over")
    parts = joined("paragraphs", [title, *_render_plan(progress), *_render_footer(progress)])
    return limit_length(render(parts, language))


def render_question(question: str, choices: Sequence[str], language: str) -> str:
    """Render a question for a person, with how to answer."""
    numbered = [Text(f"{number}. {neutralize_line(choice)}") for number, choice in enumerate(choices, 1)]
    answer = text("comment.answer_choice") if numbered else text("comment.answer")
    parts = [text("comment.question"), Text(neutralize(question)), joined("lines", numbered), answer]
    return limit_length(render(joined("paragraphs", parts), language))


def render_approval(preview: str, why: Text, language: str) -> str:
    """Render an approval request with the exact action, and how to allow it."""
    quoted = Text(neutralize(f"~~~~~~~~\n{preview.replace('~~~~~~~~', '~ ~')}\n~~~~~~~~"))
    parts = [
        text("comment.approval", why=neutralize_line(render(why, language))),
        quoted,
        text("comment.allow"),
    ]
    return limit_length(render(joined("paragraphs", parts), language))


def render_ending(ending: Ending, language: str) -> str:
    """Render the result of the item and the next steps. An end at a limit is never reported as done."""
    why = neutralize_line(render(ending.why, language)) if ending.why else ""
    parts = [
        text("comment.told", name=ending.asked_by) if is_account(ending.asked_by) else "",
        text(_OUTCOME_TEXTS[ending.outcome]),
        _render_changes(ending),
        text("comment.why", why=why) if why else "",
        neutralize(ending.words),
        text("comment.review", url=ending.request_url) if ending.request_url else "",
        text("comment.again", label=to_inline_code(ending.label)) if ending.label else "",
    ]
    return limit_length(render(joined("paragraphs", parts), language))


def _render_changes(ending: Ending) -> Text:
    """Return where the changes are if no request shows them, or that there are none."""
    match ending.changes:
        case "none" if ending.outcome in ("done", "limit", "unverified"):
            return text("comment.unchanged")
        case "on_branch" if (
            ending.outcome in ("failed", "limit", "unverified", "stopped") or not ending.request_url
        ):
            return text("comment.on_branch")
        case _:
            return Text("")


def limit_length(comment: str) -> str:
    """Limit a comment to the forge's maximum. Its parts are limited before, so this is the last resort."""
    return truncate_middle(comment, MOST - 200)


def is_account(name: str) -> bool:
    """Return True if `name` can be an account name that is safe to mention."""
    return (
        0 < len(name) <= 255
        and name.isascii()
        and name.replace("-", "").replace("_", "").replace(".", "").isalnum()
    )


def _render_plan(progress: ProgressReport) -> list[Text]:
    plan = progress.plan
    if plan is None or not plan.steps:
        return [text("comment.no_plan")] if progress.status in _WORKING else []
    first = [step for step in plan.steps if not progress.original or step.step_id in progress.original]
    later = [step for step in plan.steps if step not in first]
    completed, total = plan.progress()
    complete = later and all(step.status == "completed" for step in first)
    return [
        text("comment.goal", goal=neutralize_line(plan.goal or plan.name, 1000)),
        text("comment.plan_completed") if complete else text("comment.plan"),
        _render_checklist(first),
        text("comment.additional") if later else Text(""),
        _render_checklist(later),
        text("comment.progress", done=completed, total=total, percent=100 * completed // total),
    ]


def _render_checklist(steps: Sequence[Step]) -> Text:
    more = len(steps) - MOST_STEPS
    lines: list[str] = [_render_step(step) for step in steps[:MOST_STEPS]]
    return joined("lines", [*lines, text("comment.more_steps", count=more) if more > 0 else ""])


def _render_step(step: Step) -> Text:
    name = neutralize_line(step.name)
    match step.status:
        case "completed":
            return Text(f"- [x] {name}")
        case "failed":
            return Text(f"- [ ] ❌ {name}")
        case "in_progress":
            return text("comment.step_now", name=name)
        case "pending":
            return Text(f"- [ ] {name}")


def _render_footer(progress: ProgressReport) -> list[Text]:
    usage = progress.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    spent = text("comment.tokens", count=f"{tokens:,}")
    if usage.cost is not None:
        spent = text("comment.tokens_cost", count=f"{tokens:,}", cost=f"{usage.cost:.2f}")
    return [
        text("comment.status", status=text(_STATUS_TEXTS[progress.status])),
        spent if tokens else Text(""),
        text("comment.to_stop", label=to_inline_code(progress.label))
        if progress.status in _WORKING and progress.label
        else Text(""),
    ]

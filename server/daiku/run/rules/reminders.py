"""Reminders to the model before a run fails: its calls fail, its turns run out, it has not answered yet."""

from __future__ import annotations

import re
from typing import NamedTuple

from daiku.domain.errors import Failure
from daiku.domain.events import Reminder
from daiku.domain.messages import AssistantMessage, ToolMessage, is_own
from daiku.run.rules.state.repetition import equal_errors
from daiku.run.rules.state.state import State
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, text

TOLD_ERRORS = 3
"""Replies in a row of which no call could be carried out, before the model is told what would be right."""
ROUNDS_LEFT = 10
"""So many replies before the last one the model is told that they run out."""
LEAST_ROUNDS = 5
"""A run with fewer rounds than this has none to spare for a last word."""
SHOWN_CAUSE = 300
"""Characters of what failed last."""
NO_MORE_CALLS = text("calls.after_last_word")
GO_ON = (
    "Your reply reached the output limit and was cut off. Go on exactly where it stopped: the two parts are joined. Repeat "
    "nothing, and be brief."
)


class Remind(NamedTuple):
    """A word of Daiku's own to the model, and what it is for."""

    reminder: Reminder
    text: str


def rounds_of(state: State) -> int:
    """Replies of models so far that count against the limit, those of nested runs and of the runs around included."""
    return state.request.rounds_before + state.spending.rounds + state.nested.rounds


def reserves_final_round(state: State) -> bool:
    """Return whether the run's last round is reserved for its own closing words, not for nested runs."""
    return state.request.asks_model and not 0 < state.request.asked_limits.max_rounds < LEAST_ROUNDS


def limit_reached(state: State, *, before: int = 0) -> Failure | None:
    """Return why the run must end by its limits on rounds or failed calls; `before`: that many rounds early."""
    limits = state.request.limits
    if 0 < limits.max_tool_errors <= state.health.failed_replies:
        what = text("limits.failed_replies", count=state.health.failed_replies)
        return _too_many_errors(state, what, "max_tool_errors")
    if 0 < limits.max_equal_errors <= (equal := equal_errors(state.health.trail)):
        return _too_many_errors(state, text("limits.equal_errors", count=equal), "max_equal_errors")
    used = rounds_of(state)
    if limits.max_rounds and used >= limits.max_rounds - before:
        return limit_failure(
            text("limits.rounds"), text("limits.count_rounds", count=limits.max_rounds), "max_rounds"
        )
    return None


def _too_many_errors(state: State, what: Text, setting: str) -> Failure:
    why, over = _cause(state), limit_failure(text("limits.tool_errors"), what, setting)
    if not why:
        return over
    return over.model_copy(update={"message": text("limits.errors_reached", what=what, why=why)})


def _cause(state: State) -> str:
    """What failed last, in its own words: the limit is not what is wrong."""
    answers = (
        m
        for m in reversed(state.conversation.messages)
        if isinstance(m, ToolMessage) and m.outcome != "not_run"
    )
    last = next(answers, None)
    if last is None or last.ok or not last.text.strip():
        return ""
    return truncate_middle(last.text.strip().partition("\n")[0], SHOWN_CAUSE)


def limit_failure(limit: Text, what: str, setting: str) -> Failure:
    """Build the failure for a limit of the settings that was reached."""
    return Failure(
        kind="limit",
        message=text("limits.reached", limit=limit, what=what),
        hint=text("limits.raise", setting=setting),
    )


def due_reminder(state: State) -> Remind | None:
    """Return the reminder that the model must get before its next turn; None if none is due."""
    limits, told = state.request.limits, state.health.reminders
    begun = (
        state.spending.rounds + state.nested.rounds > 0
    )  # who has only this one reply is not told to leave it at words
    last = limit_reached(state, before=1) if begun and reserves_final_round(state) else None
    if last is not None and "last_word" not in told:
        return Remind("last_word", _last_word(last, form=state.request.brief is not None))
    if (
        state.health.failed_replies >= TOLD_ERRORS
        and "errors" not in told
        and limits.max_tool_errors != TOLD_ERRORS
    ):
        return Remind("errors", _errors(state))
    left = limits.max_rounds - rounds_of(state)
    if limits.max_rounds > 2 * ROUNDS_LEFT and left <= ROUNDS_LEFT and "rounds" not in told:
        return Remind("rounds", _rounds(left))
    return None


def _last_word(why: Failure, *, form: bool) -> str:
    """`form`: the reply is one of a stage of work, which may have been asked for one."""
    told = (
        f"{why.message} This is your last reply in this run, and no tool is run any more. Say in words what "
        "was done and what shows it, what is left to do, what is in the way, and how to go on."
    )
    return f"{told} Where you were asked for an answer in a form, give it in that form." if form else told


def _errors(state: State) -> str:
    most = state.request.limits.max_tool_errors
    bound = f" After {most} the run ends." if most else ""
    return (
        f"None of your last {state.health.failed_replies} replies had a call that could be carried out.{bound} Each result says "
        "what was wrong and what would be right: read it again, look at the file or the tool's parameters as they "
        "are now, and make one small call that is certain to fit. If it cannot be done, say why."
    )


def _rounds(left: int) -> str:
    return (
        f"{left} replies are left in this run. Finish what is under way, leave the project in a state that works, "
        "and keep the last reply for what was done and what is left."
    )


def incomplete_turn(state: State) -> Remind | Failure | None:
    """Return a reminder if the turn was empty, cut off, or only a promise, a Failure the second time, else None."""
    last = state.conversation.messages[-1] if state.conversation.messages else None
    if (
        not isinstance(last, AssistantMessage)
        or last.calls
        or is_own(last)
        or "last_word" in state.health.reminders
    ):
        return None
    empty = not last.text.strip()
    if not empty and state.conversation.finish == "length" and state.request.brief is None:
        return None if "cut_off" in state.health.reminders else Remind("cut_off", GO_ON)
    if not empty and not promises(last.text):
        return None
    if "unfinished" in state.health.reminders:
        return Failure(
            kind="format",
            message=text("run.empty_twice" if empty else "run.promised_twice"),
            hint=text("llm.ask_another_model"),
        )
    begins = (
        "Your reply was empty." if empty else "You said what you will do next, and your reply made no call."
    )
    return Remind(
        "unfinished",
        f"{begins} Go on now: make the next call. If everything is done, say what was done; if you stop, say why.",
    )


_ACTS = (
    "read|look|check|run|open|edit|write|search|start|begin|create|update|implement|fix|add|examine|inspect|explore|find|"
    "modify|apply|make|change|analy[sz]e|proceed|continue|test|investigate|try|see|refactor|remove|replace|install|review"
)
_PROMISE = lazy(
    rf"(?:^|[.!:;\n]\s*|\b(?:first|now|next|then|so|okay|ok|great|alright)[,.]?\s+)"
    rf"(?:i['’]ll|i will|let me|let['’]s|i['’]m going to|i am going to)"
    rf"(?:\s+(?:now|first|next|then|start by|begin by|go ahead and|quickly|also|just))*\s+(?:{_ACTS})(?:ing)?\b[^?]*$",
    re.IGNORECASE,
)
_PROMISE_JA = lazy(
    r"(?:これから|次に|まず|では|それでは|今から)[^。?？\n]*(?:確認|実行|修正|作成|編集|調査|検索|実装|変更|更新|追加|読み|調べ|見|直し|書き)"
    r"[^。?？\n]{0,8}(?:します|ます|いきます|しましょう)[。.:：…]*\s*$"
)
_LATER = lazy(r"\b(?:if you|once you|when you|should you|let me know|after you)\b", re.IGNORECASE)


def promises(said: str) -> bool:
    """Return True if the text ends by announcing an action (English, Japanese), not by an offer or question."""
    end = said.strip().rpartition("\n\n")[2][-400:]
    sentences = re.split(r"(?<=[.!?。！？])\s+", end)
    last = sentences[-1] if sentences else ""
    if _LATER.search(last):
        return False
    return _PROMISE.search(last) is not None or _PROMISE_JA.search(last) is not None

"""Reminders to the model before a run fails: failing calls, the last rounds, an incomplete answer."""

from __future__ import annotations

import re
from typing import NamedTuple

from daiku.domain.errors import Failure
from daiku.domain.events import Reminder
from daiku.domain.messages import AssistantMessage, ToolMessage, is_own
from daiku.run.rules.state.repetition import count_equal_errors
from daiku.run.rules.state.state import State
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, text

TOLD_ERRORS = 3
"""Consecutive replies without an executable call, after which the model is reminded."""
ROUNDS_LEFT = 10
"""Replies left when the model is reminded of the limit."""
LEAST_ROUNDS = 5
"""Rounds of a run below which none is reserved for a final answer."""
SHOWN_CAUSE = 300
"""Characters of the last error in a failure message, at most."""
NO_MORE_CALLS = text("calls.after_last_word")
GO_ON = (
    "Your reply reached the output limit and was cut off. Go on exactly where it stopped: the two parts are joined. Repeat "
    "nothing, and be brief."
)


class ReminderText(NamedTuple):
    """Reminder to the model, with its kind."""

    reminder: Reminder
    text: str


def rounds_of(state: State) -> int:
    """Return the replies that count against the limit, including nested and outer runs."""
    return state.request.rounds_before + state.spending.rounds + state.nested.rounds


def reserves_final_round(state: State) -> bool:
    """Return True if the last round is reserved for the run's own final answer, not for nested runs."""
    return state.request.asks_model and not 0 < state.request.asked_limits.max_rounds < LEAST_ROUNDS


def limit_reached(state: State, *, before: int = 0) -> Failure | None:
    """Return the failure if a limit on rounds or failed calls is reached, `before` rounds early."""
    limits = state.request.limits
    if 0 < limits.max_tool_errors <= state.health.failed_replies:
        detail = text("limits.failed_replies", count=state.health.failed_replies)
        return _too_many_errors(state, detail, "max_tool_errors")
    if 0 < limits.max_equal_errors <= (equal := count_equal_errors(state.health.trail)):
        return _too_many_errors(state, text("limits.equal_errors", count=equal), "max_equal_errors")
    rounds = rounds_of(state)
    if limits.max_rounds and rounds >= limits.max_rounds - before:
        return limit_failure(
            text("limits.rounds"), text("limits.count_rounds", count=limits.max_rounds), "max_rounds"
        )
    return None


def _too_many_errors(state: State, detail: Text, setting: str) -> Failure:
    cause, failure = _last_error(state), limit_failure(text("limits.tool_errors"), detail, setting)
    if not cause:
        return failure
    return failure.model_copy(update={"message": text("limits.errors_reached", what=detail, why=cause)})


def _last_error(state: State) -> str:
    """Return the first line of the last error."""
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
    """Build the failure for a reached limit of the settings."""
    return Failure(
        kind="limit",
        message=text("limits.reached", limit=limit, what=what),
        hint=text("limits.raise", setting=setting),
    )


def due_reminder(state: State) -> ReminderText | None:
    """Return the reminder to send before the next turn; None if none is due."""
    limits, reminders = state.request.limits, state.health.reminders
    has_begun = (
        state.spending.rounds + state.nested.rounds > 0
    )  # a run with only one reply may still make calls
    final_limit = limit_reached(state, before=1) if has_begun and reserves_final_round(state) else None
    if final_limit is not None and "last_word" not in reminders:
        return ReminderText("last_word", _last_reply_text(final_limit, form=state.request.brief is not None))
    if (
        state.health.failed_replies >= TOLD_ERRORS
        and "errors" not in reminders
        and limits.max_tool_errors != TOLD_ERRORS
    ):
        return ReminderText("errors", _failed_calls_text(state))
    rounds_left = limits.max_rounds - rounds_of(state)
    if limits.max_rounds > 2 * ROUNDS_LEFT and rounds_left <= ROUNDS_LEFT and "rounds" not in reminders:
        return ReminderText("rounds", _rounds_left_text(rounds_left))
    return None


def _last_reply_text(failure: Failure, *, form: bool) -> str:
    """Return the reminder of the final reply. `form`: the reply may have to use a given format."""
    reminder = (
        f"{failure.message} This is your last reply in this run, and no tool is run any more. Say in words what "
        "was done and what shows it, what is left to do, what is in the way, and how to go on."
    )
    return (
        f"{reminder} Where you were asked for an answer in a form, give it in that form."
        if form
        else reminder
    )


def _failed_calls_text(state: State) -> str:
    limit = state.request.limits.max_tool_errors
    consequence = f" After {limit} the run ends." if limit else ""
    return (
        f"None of your last {state.health.failed_replies} replies had a call that could be carried out.{consequence} Each result says "
        "what was wrong and what would be right: read it again, look at the file or the tool's parameters as they "
        "are now, and make one small call that is certain to fit. If it cannot be done, say why."
    )


def _rounds_left_text(left: int) -> str:
    return (
        f"{left} replies are left in this run. Finish what is under way, leave the project in a state that works, "
        "and keep the last reply for what was done and what is left."
    )


def incomplete_turn(state: State) -> ReminderText | Failure | None:
    """Return a reminder if the turn was empty, cut off, or only a promise, a Failure the second time, else None."""
    last = state.conversation.messages[-1] if state.conversation.messages else None
    if (
        not isinstance(last, AssistantMessage)
        or last.calls
        or is_own(last)
        or "last_word" in state.health.reminders
    ):
        return None
    is_empty = not last.text.strip()
    if not is_empty and state.conversation.finish == "length" and state.request.brief is None:
        return None if "cut_off" in state.health.reminders else ReminderText("cut_off", GO_ON)
    if not is_empty and not announces_action(last.text):
        return None
    if "unfinished" in state.health.reminders:
        return Failure(
            kind="format",
            message=text("run.empty_twice" if is_empty else "run.promised_twice"),
            hint=text("llm.ask_another_model"),
        )
    problem = (
        "Your reply was empty."
        if is_empty
        else "You said what you will do next, and your reply made no call."
    )
    return ReminderText(
        "unfinished",
        f"{problem} Go on now: make the next call. If everything is done, say what was done; if you stop, say why.",
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


def announces_action(reply: str) -> bool:
    """Return True if the text ends by announcing an action (English, Japanese), not with an offer."""
    end = reply.strip().rpartition("\n\n")[2][-400:]
    sentences = re.split(r"(?<=[.!?。！？])\s+", end)
    last = sentences[-1] if sentences else ""
    if _LATER.search(last):
        return False
    return _PROMISE.search(last) is not None or _PROMISE_JA.search(last) is not None

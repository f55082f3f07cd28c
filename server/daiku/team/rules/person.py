"""Questions to the person during a team's run, and their answers as text for the later stages."""

from __future__ import annotations

from daiku.domain.work.handovers import Findings
from daiku.domain.work.plans import Plan
from daiku.run.rules.state.state import State
from daiku.team.rules.record import AnsweredCall, answered_calls
from daiku.texts.text import Text, text

GO_ON, STOP = OFFERED = (text("team.go_on"), text("team.stop_here"))


def rejection(feedback: str) -> Text:
    """Return the result text of a call that the person rejected."""
    return text("team.call_rejected_because", message=feedback) if feedback else text("team.call_rejected")


def asked(state: State, plan: Plan) -> str:
    """What the team was asked to do."""
    return state.request.prompt or plan.goal


def with_words(state: State, request: str) -> str:
    """The request with what the person said while the team worked."""
    words = "\n".join(describe_answers(state))
    return f"{request}\n\n{words}" if words else request


def describe_answers(state: State) -> tuple[str, ...]:
    """What the person said while the team worked, oldest first; an answer with its question."""
    asks = (t for t in answered_calls(state) if t.call.tool == "user/ask")
    answers = (_answer(t) for t in asks if chosen(state, t) is None)
    return (*answers, *(f"The person says: {text}" for text in state.conversation.steering))


def open_question(state: State, log: tuple[AnsweredCall, ...]) -> str | None:
    """What the researcher wants to know of the person, where they were not asked yet."""
    found = [b.handover for b in state.nested.returned if isinstance(b.handover, Findings)]
    question = found[-1].ask_user.strip() if found else ""
    if not question or any(t.call.args.get("question") == question for t in log):
        return None
    return question


def unanswered_questions(state: State) -> tuple[str, ...]:
    """Return the open questions that nobody was there to answer; the assumptions made are unconfirmed."""
    asks = (t for t in answered_calls(state) if t.call.tool == "user/ask" and not t.call.args.get("choices"))
    return tuple(str(t.call.args.get("question", "")) for t in asks if _nobody(t))


def chosen(state: State, taken: AnsweredCall) -> int | None:
    """Which of the offered choices the person took (0-based); None for words of their own, or no answer."""
    asked = state.questions.inputs.get(taken.call.id)
    given = state.questions.answers.get(asked.input_id) if asked is not None else None
    return asked.chosen(given.text) if asked is not None and given is not None else None


def _answer(taken: AnsweredCall) -> str:
    question = taken.call.args.get("question")
    if taken.call.args.get("choices"):
        return f"The person says: {taken.text}"
    if _nobody(taken):
        return (
            f"Nobody was there to answer this question: “{question}” Go by what is most usual and easiest to change "
            "later, all the same way, and say in your notes what you assumed."
        )
    return f"The person was asked: “{question}” They answered: {taken.text}"


def _nobody(taken: AnsweredCall) -> bool:
    return not taken.ok

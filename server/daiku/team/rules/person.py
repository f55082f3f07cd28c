"""The team's questions to the user, and their answers as text for later stages."""

from __future__ import annotations

from daiku.domain.work.handovers import Findings
from daiku.domain.work.plans import Plan
from daiku.run.rules.state.state import State
from daiku.team.rules.record import AnsweredCall, list_answered_calls
from daiku.texts.text import Text, text

GO_ON, STOP = OFFERED = (text("team.go_on"), text("team.stop_here"))


def format_rejection(feedback: str) -> Text:
    """Return the result text of a call that the user rejected."""
    return text("team.call_rejected_because", message=feedback) if feedback else text("team.call_rejected")


def find_task_text(state: State, plan: Plan) -> str:
    """Return the team's task: the request, else the plan's goal."""
    return state.request.prompt or plan.goal


def add_user_messages(state: State, request: str) -> str:
    """Append what the user said during the run to the request."""
    words = "\n".join(describe_answers(state))
    return f"{request}\n\n{words}" if words else request


def describe_answers(state: State) -> tuple[str, ...]:
    """Return the user's answers and messages during the run, oldest first, each answer with its question."""
    questions = (t for t in list_answered_calls(state) if t.call.tool == "user/ask")
    answers = (_format_answer(t) for t in questions if find_choice(state, t) is None)
    return (*answers, *(f"The person says: {text}" for text in state.conversation.steering))


def find_open_question(state: State, log: tuple[AnsweredCall, ...]) -> str | None:
    """Return the researcher's question to the user if it was not asked yet."""
    findings = [b.handover for b in state.nested.returned if isinstance(b.handover, Findings)]
    question = findings[-1].ask_user.strip() if findings else ""
    if not question or any(t.call.args.get("question") == question for t in log):
        return None
    return question


def find_unanswered_questions(state: State) -> tuple[str, ...]:
    """Return the questions that nobody was there to answer; assumptions replaced the answers."""
    questions = (
        t for t in list_answered_calls(state) if t.call.tool == "user/ask" and not t.call.args.get("choices")
    )
    return tuple(str(t.call.args.get("question", "")) for t in questions if _is_unanswered(t))


def find_choice(state: State, entry: AnsweredCall) -> int | None:
    """Return the 0-based choice of the user; None for a free-text answer, or no answer."""
    question = state.questions.inputs.get(entry.call.id)
    answer = state.questions.answers.get(question.input_id) if question is not None else None
    return question.chosen(answer.text) if question is not None and answer is not None else None


def _format_answer(entry: AnsweredCall) -> str:
    question = entry.call.args.get("question")
    if entry.call.args.get("choices"):
        return f"The person says: {entry.text}"
    if _is_unanswered(entry):
        return (
            f"Nobody was there to answer this question: “{question}” Go by what is most usual and easiest to change "
            "later, all the same way, and say in your notes what you assumed."
        )
    return f"The person was asked: “{question}” They answered: {entry.text}"


def _is_unanswered(entry: AnsweredCall) -> bool:
    return not entry.ok

"""The explorer: answers one question about the project from its code, read-only, in a window of its own."""

from __future__ import annotations

from daiku.agents.agent import HISTORY, LOOKING, Agent, Stage
from daiku.core.replies.parse import Unreadable
from daiku.core.state.state import State
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage
from daiku.domain.work.handovers import SaidInWords
from daiku.texts.text import text


def last_words(state: State) -> SaidInWords | Unreadable:
    """Return the answer with which the run ended; Unreadable where it ended before it said one."""
    last = state.conversation.messages[-1] if state.conversation.messages else None
    if isinstance(last, AssistantMessage) and last.text.strip() and not last.calls:
        return SaidInWords(text=last.text)
    return Unreadable(text("roles.no_answer"))


EXPLORER = Agent(
    name="explorer",
    label=Label("Explorer", "コード調査担当"),
    prompt="agents/explorer",
    description="answers a question about the code, with files and lines",
    delegate=False,
    tools=(*LOOKING, *HISTORY),
    stage=Stage(last_words),
)

"""The explorer agent: answers one question about the project's code, read-only, in a separate context window."""

from __future__ import annotations

import json

from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, ToolMessage
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import SaidInWords
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.state.state import State
from daiku.team.agent import HISTORY, LOOKING, Agent, Prompt
from daiku.team.part import Part, Stage
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import text

MAX_LISTED_CALLS = 40
"""Maximum number of calls listed for an explorer that gave no answer; the latest are kept."""
MAX_CALL_LENGTH = 160
"""Maximum characters of one listed call."""


def find_answer(state: State) -> SaidInWords | Unreadable:
    """Return the final answer, else the last text and the calls that were made. Unreadable if there are none."""
    messages = state.conversation.messages[state.conversation.start :]
    last = messages[-1] if messages else None
    if isinstance(last, AssistantMessage) and last.text.strip() and not last.calls:
        return SaidInWords(text=last.text)
    last_text = next(
        (m.text for m in reversed(messages) if isinstance(m, AssistantMessage) and m.text.strip()), ""
    )
    ok = {m.call_id for m in messages if isinstance(m, ToolMessage) and m.ok}
    lookups = dict.fromkeys(
        _format_call(call)
        for m in messages
        if isinstance(m, AssistantMessage)
        for call in m.calls
        if call.id in ok
    )
    lines = [f"- {place}" for place in list(lookups)[-MAX_LISTED_CALLS:]]
    parts = [last_text.strip(), *(["\n".join(["It looked at:", *lines])] if lines else [])]
    summary = "\n\n".join(part for part in parts if part)
    return SaidInWords(text=summary) if summary else Unreadable(text("roles.no_answer"))


def _format_call(call: ToolCall) -> str:
    """Format a call as one line that could be used to repeat it."""
    args = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in call.args.items())
    return truncate_middle(f"{wire_name(call.tool)} {args}".strip(), MAX_CALL_LENGTH)


EXPLORER = Agent(
    "explorer",
    Prompt("agents/explorer"),
    tools=(*LOOKING, *HISTORY),
    part=Part(
        label=Label("Explorer", "コード調査担当"),
        description="answers a question about the code, with files and lines",
        delegate=False,
        stage=Stage(find_answer),
    ),
)

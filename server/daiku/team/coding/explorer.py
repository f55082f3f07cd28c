"""The explorer: answers one question about the project from its code, read-only, in a window of its own."""

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

MOST_PLACES = 40
"""Calls that are named where an explorer did not come to an answer; the latest."""
MOST_SHOWN = 160
"""Characters of one of them."""


def last_words(state: State) -> SaidInWords | Unreadable:
    """Return the final answer, else what was said on the way and where the run looked. Unreadable if neither."""
    here = state.conversation.messages[state.conversation.start :]
    last = here[-1] if here else None
    if isinstance(last, AssistantMessage) and last.text.strip() and not last.calls:
        return SaidInWords(text=last.text)
    said = next((m.text for m in reversed(here) if isinstance(m, AssistantMessage) and m.text.strip()), "")
    ok = {m.call_id for m in here if isinstance(m, ToolMessage) and m.ok}
    looked = dict.fromkeys(
        _place(call) for m in here if isinstance(m, AssistantMessage) for call in m.calls if call.id in ok
    )
    places = [f"- {place}" for place in list(looked)[-MOST_PLACES:]]
    parts = [said.strip(), *(["\n".join(["It looked at:", *places])] if places else [])]
    found = "\n\n".join(part for part in parts if part)
    return SaidInWords(text=found) if found else Unreadable(text("roles.no_answer"))


def _place(call: ToolCall) -> str:
    """A call in one line, as it could be made again."""
    args = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in call.args.items())
    return truncate_middle(f"{wire_name(call.tool)} {args}".strip(), MOST_SHOWN)


EXPLORER = Agent(
    "explorer",
    Prompt("team/explorer"),
    tools=(*LOOKING, *HISTORY),
    part=Part(
        label=Label("Explorer", "コード調査担当"),
        description="answers a question about the code, with files and lines",
        delegate=False,
        stage=Stage(last_words),
    ),
)

"""What a refused call answers stays a sentence, which a person reads in their language."""

from __future__ import annotations

from daiku.domain.events import MessageEvent, RunStarted, ToolResponse
from daiku.domain.messages import ToolMessage
from daiku.domain.tools import ToolCall
from daiku.run.rules.state.fold import fold
from daiku.texts.text import Text, as_text, render, text


def test_a_refusal_is_told_in_the_persons_language() -> None:
    call = ToolCall(id="c1", tool="files/write", args={"path": "a.md", "content": "x"})
    refused = text("run.nobody_approves")
    events = (
        RunStarted(prompt="Go."),
        MessageEvent(role="assistant", text=Text(""), agent="coordinator", calls=(call,)),
        ToolResponse(id="c1", tool="files/write", ok=False, outcome="unattended", result=refused),
    )
    [answer] = [each for each in fold(events).conversation.messages if isinstance(each, ToolMessage)]
    assert answer.text == "Nobody is there to approve this."
    assert render(as_text(answer.text), "ja") == "承認する人がいません。"
    assert render(as_text("somebody's own words"), "ja") == "somebody's own words"

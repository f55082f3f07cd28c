"""A role's form as a tool call: models with native tools call it, others write the form as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias

from daiku.domain.messages import AssistantMessage, Message
from daiku.domain.tools import ToolSpec
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.rules.calls.toolnames import match_spelling, wire_name
from daiku.texts.text import Text, text

Read: TypeAlias = Callable[[AssistantMessage, tuple[Message, ...], bool], AssistantMessage | Unreadable]


def with_tool_call(spec: ToolSpec, read: Read) -> Read:
    """Return `read` for replies that may also call `spec` with the form; other calls of the reply run first."""

    def read_either(
        message: AssistantMessage, messages: tuple[Message, ...], cut: bool
    ) -> AssistantMessage | Unreadable:
        calls = [c for c in message.calls if match_spelling(c.tool, (spec.name,)) is not None]
        if not calls:
            return read(message, messages, cut)
        others = tuple(call for call in message.calls if call not in calls)
        if others:
            return message.model_copy(update={"calls": others})
        if calls[0].malformed is not None:
            return Unreadable(text("roles.report_no_json", tool=wire_name(spec.name)))
        form = Text(json.dumps(calls[0].args, ensure_ascii=False))
        return read(message.model_copy(update={"text": form, "calls": ()}), messages, False)

    return read_either

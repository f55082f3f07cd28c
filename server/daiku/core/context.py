"""What goes into the model's window: the person's words with what they point at, and compaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from daiku.core.cut import cut_middle
from daiku.domain.messages import AssistantMessage, Message, ToolMessage, UserMessage
from daiku.domain.runs import ContextItem

SUMMARY_HEAD = "Summary of the conversation so far (older messages were condensed):"
RESULT_SHARE = 400
"""Characters of a tool result that a deterministic summary keeps."""


def render_prompt(prompt: str, context: Sequence[ContextItem]) -> str:
    """The user message: the words, then each context item as a marked block."""
    blocks = [_block(item) for item in context]
    return "\n\n".join([prompt, *[b for b in blocks if b]])


def _block(item: ContextItem) -> str:
    place = item.uri or ""
    if item.range is not None:
        place += f":{item.range.start.line + 1}-{item.range.end.line + 1}"
    label = f' path="{place}"' if place else ""
    if item.text is None:
        return f'<context kind="{item.kind}"{label} />' if place else ""
    return f'<context kind="{item.kind}"{label}>\n{item.text}\n</context>'


def summary_message(summary: str) -> UserMessage:
    """How a summary stands in the conversation."""
    return UserMessage(text=f"{SUMMARY_HEAD}\n\n{summary}")


def keep_from(messages: Sequence[Message], share: int) -> int:
    """How many of the last messages a compaction keeps: at most `share`, never starting inside a
    reply's tool results, never all of them."""
    start = max(1, len(messages) - share)
    while start < len(messages) and isinstance(messages[start], ToolMessage):
        start += 1
    return len(messages) - start


def transcript(messages: Sequence[Message], result_share: int = RESULT_SHARE) -> str:
    """The messages as text for a summary; long results are cut."""
    return "\n".join(_line(m, result_share) for m in messages)


def _line(message: Message, share: int) -> str:
    match message:
        case UserMessage():
            return f"USER: {message.text}"
        case AssistantMessage():
            calls = "".join(f"\n  CALL {c.tool} {c.args}" for c in message.calls)
            return f"ASSISTANT: {message.text}{calls}"
        case ToolMessage():
            mark = "ok" if message.ok else "failed"
            return f"RESULT {message.tool} {mark}: {cut_middle(message.text, share)}"
        case _:
            assert_never(message)


def fallback_summary(messages: Sequence[Message]) -> str:
    """A summary without a model: what was asked, and what was done, cut to a few thousand characters."""
    asked = [m.text for m in messages if isinstance(m, UserMessage)]
    return (
        cut_middle("Asked:\n" + "\n".join(asked), 4000)
        + "\n\nDone:\n"
        + cut_middle(transcript(messages), 8000)
    )

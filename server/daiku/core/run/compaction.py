"""Makes the conversation shorter as was decided: shortens results, asks for a summary of the old messages."""

from __future__ import annotations

from contextlib import suppress

from daiku.core.run.ports import Ports
from daiku.core.state.condense import Condensing, file_lists
from daiku.core.state.context import summary_or_fallback
from daiku.core.state.fold import apply
from daiku.core.state.recorder import Recorder
from daiku.core.state.shorten import put_in_place, superseded
from daiku.domain.errors import DaikuError
from daiku.domain.events import Notice
from daiku.domain.held import Compacted
from daiku.texts.text import text


async def condense(how: Condensing, record: Recorder, ports: Ports) -> None:
    """Record the results that are shortened, then the summary of what is no longer kept, where there is to be one."""
    if how.pruned is not None:
        record(how.pruned)
    if how.kept is not None:
        await _summarise(how.kept, how.size, record, ports)


async def _summarise(kept: int, size: int, record: Recorder, ports: Ports) -> None:
    rules, messages = ports.rules, record.state.conversation.messages
    start = len(messages) - kept
    reading = rules.window().reading
    read, changed = file_lists(record.state, start, reading)
    old = put_in_place(messages, superseded(messages, start, reading))[:start]
    summary, usage = "", None
    with suppress(DaikuError):  # a plain summary does as well
        summary, usage = await ports.summarise(old)
    state = record.state
    compacted = Compacted(
        summary=summary_or_fallback(summary, old),
        kept=kept + len(state.conversation.messages) - len(messages),  # what was said meanwhile stays too
        before_tokens=size,
        files_read=read,
        files_changed=changed,
    )
    after = rules.prefix() + rules.tokens(apply(state, compacted).conversation.messages)
    record(
        *((usage,) if usage is not None else ()),
        compacted.model_copy(update={"after_tokens": after}),
        Notice(level="info", text=text("run.condensed", count=len(old))),
    )

"""What a model is shown of an output: all of it, or a part and the name under which the whole is kept."""

from __future__ import annotations

from typing import NamedTuple

from daiku.core.calls.toolnames import wire_name
from daiku.core.text.decisive import truncate_output
from daiku.core.text.truncate import OUTPUT_LIMIT
from daiku.tools.shell.background import Job
from daiku.tools.shell.preparing import RunArgs
from daiku.tools.shell.process import Command
from daiku.tools.tool import ToolContext

CHARACTERS = 3
"""Characters of output that count as a token."""
AROUND = 1000
"""Characters of a result that are not output."""


class Printed(NamedTuple):
    """`shown` is what a model reads; `whole` the name of the whole output, empty where `shown` is all."""

    shown: str
    whole: str = ""


def shown_output(process: Command, args: RunArgs, context: ToolContext) -> Printed:
    """What is shown of the output of a command that has ended. Blocks."""
    limit = max(args.max_output * CHARACTERS - AROUND, AROUND // 2)
    return _kept(process.output.text(), limit, args.command, context)


def shown_news(name: str, news: str, job: Job, context: ToolContext) -> Printed:
    """What is shown of the `news` of a background command; where they are too long, the whole of what it printed
    so far is kept under its name. Blocks."""
    limit = OUTPUT_LIMIT - AROUND
    if len(news) <= limit and not job.lost:
        return Printed(news)
    whole = _keep(job.process.output.text(), name, context, again=True)
    return Printed(truncate_output(news, limit, _how(whole)), whole)


def _kept(text: str, limit: int, words: str, context: ToolContext) -> Printed:
    if len(text) <= limit:
        return Printed(text)
    whole = _keep(text, words, context)
    return Printed(truncate_output(text, limit, _how(whole)), whole)


def _keep(text: str, words: str, context: ToolContext, *, again: bool = False) -> str:
    if context.outputs is None:
        return ""
    return context.outputs.keep(context.session, words, text, again=again)


def _how(whole: str) -> str:
    if not whole:
        return "Send the output to a file or through grep, head or tail"
    search, read = wire_name("search/text"), wire_name("files/read")
    return f'The whole output is kept as "{whole}": give that as path to {search} or {read}'

"""Format a command's output for the model: in full, or a part and the name of the stored output."""

from __future__ import annotations

import time
from typing import NamedTuple

from daiku.domain.base import JsonObject
from daiku.domain.tools import ToolResult
from daiku.guard.sandbox import session_network
from daiku.guard.sandbox.aside import QuarantinedFile
from daiku.run.rules.calls.toolnames import wire_name
from daiku.texts.rules.decisive import truncate_output
from daiku.texts.rules.truncate import OUTPUT_LIMIT
from daiku.tools.shell.background import BackgroundJob
from daiku.tools.shell.preparing import PreparedCommand, RunArgs, names_git
from daiku.tools.shell.process import Command
from daiku.tools.shell.protecting import format_quarantine_note
from daiku.tools.tool import ToolContext
from daiku.workspace.ignores import CLOSING

CHARACTERS_PER_TOKEN = 3
"""Characters of output per token."""
RESERVED_CHARACTERS = 1000
"""Characters of a result that are not output."""


class Printed(NamedTuple):
    """Output for a model.

    `shown`: the text; `whole`: the name of the stored output, empty if `shown` is complete.
    """

    shown: str
    whole: str = ""


def format_output(process: Command, args: RunArgs, context: ToolContext) -> Printed:
    """Format the output of a command that has ended. Blocks."""
    limit = max(args.max_output * CHARACTERS_PER_TOKEN - RESERVED_CHARACTERS, RESERVED_CHARACTERS // 2)
    return _format_text(process.output.text(), limit, args.command, context)


def format_news(name: str, news: str, job: BackgroundJob, context: ToolContext) -> Printed:
    """Format the new output of a background command. Blocks.

    If it is too long, all of the command's output so far is stored under its name.
    """
    limit = OUTPUT_LIMIT - RESERVED_CHARACTERS
    if len(news) <= limit and not job.lost:
        return Printed(news)
    whole = _store_output(job.process.output.text(), name, context, again=True)
    return Printed(truncate_output(news, limit, _format_advice(whole)), whole)


def _format_text(text: str, limit: int, words: str, context: ToolContext) -> Printed:
    if len(text) <= limit:
        return Printed(text)
    whole = _store_output(text, words, context)
    return Printed(truncate_output(text, limit, _format_advice(whole)), whole)


def _store_output(text: str, words: str, context: ToolContext, *, again: bool = False) -> str:
    if context.outputs is None:
        return ""
    return context.outputs.keep(context.session, words, text, again=again)


def _format_advice(stored_name: str) -> str:
    if not stored_name:
        return "Send the output to a file or through grep, head or tail"
    search, read = wire_name("search/text"), wire_name("files/read")
    return f'The whole output is kept as "{stored_name}": give that as path to {search} or {read}'


def build_command_result(
    process: Command,
    code: int,
    note: str,
    quarantined: tuple[QuarantinedFile, ...],
    printed: Printed,
    hint: str,
) -> ToolResult:
    """Build the result of a command that ended with `code`; `ok` is true for 0."""
    seconds = time.monotonic() - process.started
    output = printed.shown
    head = f"Exit code {code} after {seconds:.1f} s."
    text = "\n".join(
        part
        for part in (
            f"{head} {note}".strip(),
            output.rstrip("\n") or "(no output)",
            format_quarantine_note(quarantined),
            hint,
        )
        if part
    )
    data: JsonObject = {"exitCode": code, "output": output, "durationMs": int(seconds * 1000)}
    if printed.whole:
        data["whole"] = printed.whole
    if quarantined:
        data["putAside"] = [str(file.place) for file in quarantined]
    return ToolResult(ok=code == 0, text=text, data=data)


_NETWORK_SIGNS = (
    "could not resolve host", "name resolution", "network is unreachable", "getaddrinfo", "enotfound", "eai_again",
    "name or service not known", "connection error", "failed to establish a new connection", "could not connect",
)  # fmt: skip
_REFUSED_SIGNS = ("connection refused", "econnrefused", "connectionrefused")
_PERMISSION_SIGNS = ("permission denied", "eacces")
_COVERED_SIGNS = (
    *_PERMISSION_SIGNS,
    "unsupported file type",
    "can only add regular files",
    "device or resource busy",
)
_READ_ONLY_SIGNS = ("read-only file system", "erofs")
_OWN_NETWORK_NOTE = (
    "Each command has its own network here: start a server and the command that uses it in one call, as in"
    " `SERVER & sleep 2; TEST`."
)


def find_hint(output: str, prepared: PreparedCommand) -> str:
    """Return a hint for the model if the output shows that the sandbox made the command fail; else empty."""
    lower = output.lower()
    network = prepared.bounds is not None and prepared.bounds.network
    if prepared.masked and any(sign in lower for sign in _PERMISSION_SIGNS):
        return "Files of secrets are hidden from this command. If it needs one, name the file in the command; the person is asked."
    if has_no_history(prepared):
        return "The repository is hidden from this command because .daikuignore closes files. Call git in a command of its own."
    if _has_closed_files(prepared) and any(sign in lower for sign in _COVERED_SIGNS):
        return "Commands cannot read or change the files that .daikuignore closes. Name the other files, also to git."
    if any(sign in lower for sign in _REFUSED_SIGNS):
        return _explain_refused(prepared)
    if not network and any(sign in lower for sign in _NETWORK_SIGNS):
        return "The sandbox has no network. If the command needs it, call again with network: true; the person is asked."
    if any(sign in lower for sign in _READ_ONLY_SIGNS):
        return "The sandbox lets commands write only in the workspace and /tmp, not to protected files (.git/hooks, .vscode, …), and not to packages that share their files with a store outside the workspace."
    return ""


def _has_closed_files(prepared: PreparedCommand) -> bool:
    return any((root / CLOSING).is_file() for root in prepared.roots)


def has_no_history(prepared: PreparedCommand) -> bool:
    """Return True if git finds no history in the sandbox of the command."""
    hidden = prepared.hides_history and bool(prepared.history)
    return hidden and names_git(prepared.command) and _has_closed_files(prepared)


def _explain_refused(prepared: PreparedCommand) -> str:
    if prepared.bounds is None or prepared.bounds.network:
        return (
            "A command with network: true reaches only servers that run with network: true or outside Daiku."
        )
    if not session_network(prepared.bounds.session):
        return _OWN_NETWORK_NOTE
    return (
        "Without network: true, 127.0.0.1 reaches only servers that commands of this session started without it."
        " For another server of this machine, call again with network: true; the person is asked."
    )


def format_reach_note(prepared: PreparedCommand) -> str:
    """Say which commands can reach a background server; empty outside the sandbox."""
    if prepared.bounds is None:
        return ""
    if prepared.bounds.network:
        return " If it is a server, only commands with network: true reach it."
    if not session_network(prepared.bounds.session):
        return f" {_OWN_NETWORK_NOTE}"
    return " If it is a server, commands of this session reach it on 127.0.0.1, without network: true."

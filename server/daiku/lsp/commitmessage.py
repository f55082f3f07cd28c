"""`daiku.commitMessage`: a message for what would be committed, by one call of a model; nothing is committed."""

from __future__ import annotations

import asyncio
import re

from daiku import api
from daiku.app import App
from daiku.domain.base import Frozen, JsonObject
from daiku.domain.errors import DaikuError, Failure, LLMRequestError, UsageError
from daiku.domain.messages import ModelRequest, Reply, UserMessage
from daiku.lsp.actiontexts import action_texts
from daiku.lsp.connection import Connection
from daiku.lsp.opening import to_path
from daiku.lsp.stream import ProgressBar
from daiku.prompts import render
from daiku.tools.git import DiffArgs, LogArgs, StatusArgs, diff, log, status
from daiku.tools.tool import ToolContext

SUBJECTS = 12
_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
_SUBJECT = re.compile(r"^    (\S.*)$", re.MULTILINE)


class CommitVariables(Frozen):
    """What the prompt is made from."""

    subjects: tuple[str, ...]


async def write_commit_message(
    c: Connection, uri: str | None, said: str, model: str | None, token: int | str | None
) -> api.TextResult:
    """The message for the staged changes, else for all; `uri` names the repository's folder, `said` is
    what the person asks for besides. Raises UsageError where nothing has changed, LLMError."""
    app = await c.app()
    bar = None if token is None else ProgressBar(c.protocol, token, c.words)
    task = asyncio.current_task()
    if bar is not None and token is not None and task is not None:
        c.cancels[token] = task.cancel
        bar.begin(action_texts(c.offer.locale).commit_title)
    ended = "failed"
    try:
        text = await _ask(app, *await _changes(app, _folder(app, uri)), said, model or "")
        ended = "completed"
        return api.TextResult(text=text)
    finally:
        if bar is not None and token is not None:
            c.cancels.pop(token, None)
            bar.end(ended)


async def _ask(app: App, changes: str, subjects: tuple[str, ...], said: str, model: str) -> str:
    words = f"{changes}\n\n{said}" if said else changes
    request = ModelRequest(
        model="",
        system=render("editor/commit_message", CommitVariables(subjects=subjects)),
        messages=(UserMessage(text=words),),
    )
    text = ""
    async for event in app.llm.resolve(model).stream(request):
        if isinstance(event, Reply):
            text = event.message.text.strip()
    text = _FENCE.sub(r"\1", text).strip()
    if not text:
        raise LLMRequestError(
            Failure(kind="format", message="The model gave no commit message.", hint="Try again.")
        )
    return text


async def _changes(app: App, folder: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """What would be committed, as text for the model, and the first lines of the last commits."""
    context = _context(app)
    staged = await diff(DiffArgs(staged=True, paths=folder), context)
    if not staged.ok:
        raise UsageError(Failure(kind="usage", message=staged.text.strip()))
    what, name = _output(staged.data), "staged"
    if not what:
        what, name = _output((await diff(DiffArgs(paths=folder), context)).data), "not staged"
        listed = _output((await status(StatusArgs(paths=folder), context)).data)
        if not what and len(listed.splitlines()) < 2:  # its first line is the branch
            raise UsageError(
                Failure(
                    kind="usage",
                    message="Nothing has changed: there is nothing to write a message for.",
                    hint="Change or stage something first.",
                )
            )
        what = f"<status>\n{listed}\n</status>\n\n{what}"
    recent = await log(LogArgs(limit=SUBJECTS), context)
    subjects = tuple(_SUBJECT.findall(recent.text)) if recent.ok else ()
    return f'<diff changes="{name}">\n{what}\n</diff>', subjects


def _output(data: JsonObject | None) -> str:
    output = (data or {}).get("output")
    return output.strip() if isinstance(output, str) else ""


def _folder(app: App, uri: str | None) -> tuple[str, ...]:
    """The repository's folder as the tools take it; a repository above the workspace needs no name."""
    path = to_path(uri) if uri and uri.startswith("file:") else None
    if path is None:
        return ()
    try:
        return (str(app.workspace.locate(path)),)
    except DaikuError:
        return ()


def _context(app: App) -> ToolContext:
    return ToolContext(
        session="",
        run="",
        call_id="",
        workspace=app.workspace,
        checkpoints=app.checkpoints,
        config=app.config,
        emit=lambda _: None,
    )

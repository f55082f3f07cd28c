"""`daiku.commitMessage`: a message for what would be committed, by a run of an agent without tools; nothing is committed."""

from __future__ import annotations

import re

from daiku.domain.base import JsonObject
from daiku.domain.errors import DaikuError, Failure, LLMRequestError, UsageError
from daiku.domain.runs import ContextItem, RunResult, has_answer
from daiku.lsp.initialize import to_path
from daiku.sdk.fronts import App, RunRequest
from daiku.texts.text import Text, text
from daiku.tools.git.git import DiffArgs, LogArgs, StatusArgs, diff, log, status
from daiku.tools.tool import ToolContext

SUBJECTS = 12
_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
_SUBJECT = re.compile(r"^    (\S.*)$", re.MULTILINE)


async def message_request(app: App, uri: str | None, words: str) -> RunRequest:
    """What is asked of the run: `words`, about the staged changes, else about all; `uri` names the
    repository's folder. Raises UsageError where nothing has changed."""
    changes, subjects = await _changes(app, _folder(app, uri))
    context = [ContextItem(kind="text", text=changes)]
    if subjects:
        listed = "\n".join(subjects)
        context.append(ContextItem(kind="text", text=f"<earlier_commits>\n{listed}\n</earlier_commits>"))
    return RunRequest(words, agent="committer", mode="ask", context=tuple(context))


def message_of(result: RunResult) -> RunResult:
    """The result with nothing but the message as its text. Raises the run's failure, LLMRequestError
    where the model said nothing."""
    if result.error is not None:
        raise DaikuError(result.error)
    said = _FENCE.sub(r"\1", result.text.strip()).strip()
    if has_answer(result.status) and not said:
        raise LLMRequestError(
            Failure(kind="format", message=text("commit.no_message"), hint=text("commit.try_again"))
        )
    return result.model_copy(update={"text": Text(said)})


async def _changes(app: App, folder: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """What would be committed, as text for the model, and the first lines of the last commits."""
    context = _context(app)
    staged = await diff(DiffArgs(staged=True, paths=folder), context)
    if not staged.ok:
        raise UsageError(Failure(kind="usage", message=Text(staged.text.strip())))
    what, name = _output(staged.data), "staged"
    if not what:
        what, name = _output((await diff(DiffArgs(paths=folder), context)).data), "not staged"
        listed = _output((await status(StatusArgs(paths=folder), context)).data)
        if not what and len(listed.splitlines()) < 2:  # its first line is the branch
            raise UsageError(
                Failure(
                    kind="usage", message=text("commit.nothing_changed"), hint=text("commit.change_first")
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

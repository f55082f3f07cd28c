"""`workspace/executeCommand`: what a person of any editor can do with Daiku by name."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from daiku import api
from daiku.dataclass import dataclass
from daiku.doctor import check_app, check_files, check_machine
from daiku.domain.base import JsonObject, Localizable, Wire
from daiku.domain.errors import DaikuError, Failure, LLMRequestError, UsageError
from daiku.domain.events import RunStarted
from daiku.domain.runs import ClientApprovals, ContextItem, Mode, Range, RunResult, has_answer
from daiku.fronts.lsp.connection import INFO, ClientConnection
from daiku.fronts.lsp.initialize import Json, to_path
from daiku.fronts.lsp.requests.context_items import Problem, context_items
from daiku.fronts.lsp.requests.run_requests import document as revise
from daiku.fronts.lsp.requests.run_requests import resume as resume_run
from daiku.fronts.lsp.requests.run_requests import start
from daiku.fronts.lsp.wire.jsontext import MessageId, model_json
from daiku.fronts.lsp.wire.refused import CANCELLED, Refused, invalid
from daiku.library.fronts import App, RunRequest, is_untitled, to_restore_result
from daiku.team.rules.drafting.headings import is_prose
from daiku.texts.text import Text, render, shortened, text
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


async def examine(c: ClientConnection, _: api.Nothing | None = None) -> api.DoctorResult:
    """Return all of the doctor's findings. Raises DaikuError if the settings are wrong."""
    app = await c.app()
    place = app.workspace.roots[0] if app.workspace.roots else None
    found = [
        *check_machine(),
        *check_files(place, os.environ, trusted=c.offer.trusted is not False),
        *await check_app(app),
    ]
    return api.DoctorResult(findings=tuple(found))


SHOWN = 3000
"""Characters of an answer in a message box, for editors that have no other place for it."""


class CommandArgs(Wire):
    """The one argument of a command: a text, or this object. `range` counts as the connection does."""

    text: str | None = None
    instruction: str | None = None
    ask: bool = False
    """The client may let the person change the instruction first; one that cannot sends it as it is."""
    goal: str | None = None
    uri: str | None = None
    range: Range | None = None
    diagnostics: tuple[Problem, ...] = ()
    """LSP's own, as the client had them."""
    context: tuple[ContextItem, ...] = ()
    session_id: str | None = None
    run_id: str | None = None
    model: str | None = None
    approvals: ClientApprovals | None = None

    @property
    def said(self) -> str:
        return self.text or self.instruction or self.goal or ""


class ExecuteParams(BaseModel):
    """LSP's own params; other keys are the client's business."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    command: str
    arguments: tuple[Any, ...] = ()
    work_done_token: Annotated[int | str | None, Field(alias="workDoneToken")] = None
    partial_result_token: Annotated[int | str | None, Field(alias="partialResultToken")] = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """Where a command's progress goes, and the chunks of its run."""

    bar: int | str | None = None
    chunks: int | str | None = None


Command: TypeAlias = Callable[[ClientConnection, CommandArgs, Tokens], Awaitable[BaseModel | None]]


async def execute(c: ClientConnection, params: Json) -> str:
    """Answer `workspace/executeCommand`. Raises Refused, DaikuError, pydantic.ValidationError."""
    given = ExecuteParams.model_validate(params if params is not None else {})
    command = COMMANDS.get(given.command)
    if command is None:
        raise invalid([f"command: there is no command {given.command!r}"])
    first = given.arguments[0] if given.arguments else None
    args = CommandArgs(text=first) if isinstance(first, str) else CommandArgs.model_validate(first or {})
    result = await command(c, args, Tokens(given.work_done_token, given.partial_result_token))
    return model_json(result.in_language(c.protocol.language) if isinstance(result, Localizable) else result)


def prompt(
    words: str,
    mode: Mode = "act",
    *,
    needs: str = "",
    look: bool = False,
    agent: str = "coordinator",
    changes: bool = False,
) -> Command:
    """A command that asks `agent`: the sentence `words`, then what the person said, about the given place. `look`: with
    the problems that the editor knows there. `changes`: code that is there is changed, which whoever can run its test
    does, and is asked to."""

    async def run(c: ClientConnection, args: CommandArgs, tokens: Tokens) -> BaseModel:
        if needs and not args.said:
            raise invalid([f"arguments[0]: {needs}"])
        trusted = c.offer.trusted is not False
        opening = render(text(words), c.protocol.language) if words else ""
        there = changes and trusted and (args.uri is not None or bool(args.context))
        then = render(text("action.then_test"), c.protocol.language) if there else ""
        asked = "\n\n".join(part for part in (opening, args.said, then) if part)
        context = args.context
        if args.uri is not None:
            context += await context_items(c, args.uri, args.range, args.diagnostics, look=look)
        # Where nothing may be changed or run, no mode that would try is of use.
        chosen: Mode = mode if trusted else "ask"
        who = agent if trusted and not there else "coordinator"
        return await _run(c, args, tokens, RunRequest(asked, agent=who, mode=chosen, context=context))

    return run


async def fix(c: ClientConnection, args: CommandArgs, tokens: Tokens) -> BaseModel | None:
    """Ask the agent to fix the problems in a range, or a failed terminal command if one is given."""
    in_terminal = any(item.kind == "terminal" for item in args.context)
    words = "action.fix_terminal" if in_terminal else "action.fix"
    command = prompt(words, look=True, changes=not in_terminal)
    return await command(c, args, tokens)


async def document(c: ClientConnection, args: CommandArgs, tokens: Tokens) -> BaseModel | None:
    """Revise prose by the drafting agents; of code, have the documentation written that it lacks."""
    trusted = c.offer.trusted is not False
    code = args.uri is not None and not is_untitled(args.uri) and not is_prose(args.uri)
    if args.uri is None or code or not trusted:
        return await prompt("action.document", changes=True)(c, args, tokens)
    asked = args.said or render(text("action.revise"), c.protocol.language)
    params = api.DocumentParams(
        uri=args.uri, instruction=asked, range=args.range, **dict(await _start(c, args, tokens))
    )
    return _shown(c, await revise(c, params))


async def research(c: ClientConnection, args: CommandArgs, tokens: Tokens) -> BaseModel:
    if not args.said:
        raise invalid(["arguments[0]: say what to find out"])
    return await _run(c, args, tokens, RunRequest(args.said, agent="researcher", mode="ask"))


async def commit_message(c: ClientConnection, args: CommandArgs, tokens: Tokens) -> BaseModel:
    words = "\n\n".join(
        part for part in (render(text("action.commit"), c.protocol.language), args.said) if part
    )
    result = await _result(c, args, tokens, await message_request(await c.app(), args.uri, words))
    if result.status == "cancelled":  # whoever fills a box with the text must not empty it
        raise Refused(CANCELLED, "The run was cancelled.")
    message = message_of(result)
    _tell(c, message.text)
    return message


async def new_chat(c: ClientConnection, args: CommandArgs, _: Tokens) -> BaseModel:
    return (await c.app()).journal.new_session(args.said, c.workspace_key)


async def undo(c: ClientConnection, args: CommandArgs, _: Tokens) -> BaseModel:
    app = await c.app()
    session = args.session_id or _newest(
        c, [s.session_id for s in app.journal.list_sessions("", 1, c.workspace_key)]
    )
    brought = await app.reviews.undo(session)
    if brought.cannot_undo:
        ran = "\n".join(each.command for each in brought.cannot_undo)
        _tell(c, f"{render(text('editor.stays'), c.protocol.language)}\n{ran}")
    return to_restore_result(brought)


async def stop(c: ClientConnection, args: CommandArgs, _: Tokens) -> None:
    runs = (await c.app()).runs
    for run in (args.run_id,) if args.run_id else runs.running():
        await runs.cancel(run)


async def resume(c: ClientConnection, args: CommandArgs, tokens: Tokens) -> BaseModel:
    run = args.run_id
    if run is None:
        journal = (await c.app()).journal
        sessions = journal.list_sessions("", 50, c.workspace_key)
        open_ones = [s.session_id for s in sessions if s.status in ("interrupted", "paused")]
        chunks = journal.chunks(_newest(c, open_ones))
        run = next(k.run for k in reversed(chunks) if isinstance(k.event, RunStarted) and k.parent is None)
    token = await _token(c, tokens.bar)
    params = api.ResumeParams(run_id=run, work_done_token=token, partial_result_token=tokens.chunks)
    return await resume_run(c, params)


async def doctor(c: ClientConnection, _: CommandArgs, __: Tokens) -> BaseModel:
    """Show the doctor's findings in a message, and return them as text."""
    roots = ", ".join(map(str, (await c.app()).workspace.roots))
    workspace = text("editor.workspace", paths=roots) if roots else text("editor.no_workspace")
    lines = [render(workspace, c.protocol.language)]
    found = (await examine(c)).in_language(c.protocol.language).findings
    lines += [" ".join(filter(None, (MARKS[one.state], one.what, one.mend))) for one in found]
    report = "\n".join(lines)
    c.protocol.notify("window/showMessage", {"type": INFO, "message": report})
    return api.TextResult(text=report)


MARKS = {"good": "✓", "note": "·", "bad": "✗"}

COMMANDS: dict[str, Command] = {
    "daiku.newChat": new_chat,
    "daiku.plan": prompt("", "plan", needs="say what to plan", agent="planner"),
    "daiku.research": research,
    "daiku.generateCode": prompt("", needs="say what to write", agent="coder", changes=True),
    "daiku.runCommands": prompt("", needs="say what to run", agent="runner"),
    "daiku.explain": prompt("action.explain", "ask"),
    "daiku.fix": fix,
    "daiku.writeTests": prompt("action.tests"),
    "daiku.document": document,
    "daiku.review": prompt("action.review", "ask"),
    "daiku.commitMessage": commit_message,
    "daiku.undo": undo,
    "daiku.stop": stop,
    "daiku.resume": resume,
    "daiku.doctor": doctor,
}


async def _run(c: ClientConnection, args: CommandArgs, tokens: Tokens, request: RunRequest) -> BaseModel:
    return _shown(c, await _result(c, args, tokens, request))


def _shown(c: ClientConnection, outcome: RunResult) -> RunResult:
    result = outcome.in_language(c.protocol.language)
    error = result.error
    _tell(c, result.text or (f"{error.message} {error.hint}".strip() if error else result.status))
    return result


async def _result(c: ClientConnection, args: CommandArgs, tokens: Tokens, request: RunRequest) -> RunResult:
    return await start(c, await _start(c, args, tokens), request)


async def _start(c: ClientConnection, args: CommandArgs, tokens: Tokens) -> api.RunStart:
    return api.RunStart(
        session_id=args.session_id,
        model=args.model,
        approvals=args.approvals,
        work_done_token=await _token(c, tokens.bar),
        partial_result_token=tokens.chunks,
    )


def _tell(c: ClientConnection, said: str) -> None:
    """Show an answer where the client has no place of its own for it."""
    if not c.offer.approvals:
        c.protocol.notify(
            "window/showMessage", {"type": INFO, "message": shortened(said, SHOWN, c.protocol.language)}
        )


async def _token(c: ClientConnection, given: int | str | None) -> int | str | None:
    """The client's progress token, or one that we make where it shows progress."""
    if given is not None or not c.offer.progress:
        return given
    token: MessageId = f"daiku-{c.protocol.next_token}"
    try:
        await c.protocol.ask("window/workDoneProgress/create", {"token": token})
    except Refused:
        return None
    return str(token)


def _newest(c: ClientConnection, sessions: list[str]) -> str:
    if not sessions:
        where = Path(c.workspace_key).name or text("editor.this_window")
        raise UsageError(Failure(kind="not_found", message=text("editor.no_conversation", where=where)))
    return sessions[0]

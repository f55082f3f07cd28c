"""`workspace/executeCommand`: what a person of any editor can do with Daiku by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from daiku import api
from daiku.agents.researcher import research_request
from daiku.domain.base import Wire
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.events import RunStarted
from daiku.domain.runs import ContextItem, Mode, Range
from daiku.lsp.connection import INFO, Connection
from daiku.lsp.jsontext import MessageId, model_json
from daiku.lsp.opening import Json
from daiku.lsp.starts import resume as resume_run
from daiku.lsp.starts import start
from daiku.lsp.texts import shortened
from daiku.lsp.wire import Refused, invalid
from daiku.runs import RunRequest

SHOWN = 3000
"""Characters of an answer in a message box, for editors that have no other place for it."""


class CommandArgs(Wire):
    """The one argument of a command: a text, or this object."""

    text: str | None = None
    instruction: str | None = None
    goal: str | None = None
    uri: str | None = None
    range: Range | None = None
    session_id: str | None = None
    run_id: str | None = None
    model: str | None = None

    @property
    def said(self) -> str:
        return self.text or self.instruction or self.goal or ""


class ExecuteParams(BaseModel):
    """LSP's own params; other keys are the client's business."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    command: str
    arguments: tuple[Any, ...] = ()
    work_done_token: Annotated[int | str | None, Field(alias="workDoneToken")] = None


Command: TypeAlias = Callable[[Connection, CommandArgs, "int | str | None"], Awaitable[BaseModel | None]]


async def execute(c: Connection, params: Json) -> str:
    """Answer `workspace/executeCommand`. Raises Refused, DaikuError, pydantic.ValidationError."""
    given = ExecuteParams.model_validate(params if params is not None else {})
    command = COMMANDS.get(given.command)
    if command is None:
        raise invalid([f"command: there is no command {given.command!r}"])
    first = given.arguments[0] if given.arguments else None
    args = CommandArgs(text=first) if isinstance(first, str) else CommandArgs.model_validate(first or {})
    return model_json(await command(c, args, given.work_done_token))


def prompt(text: str, mode: Mode = "act", *, needs: str = "") -> Command:
    """A command that asks the coordinator: `text`, then what the person said, about the given place."""

    async def run(c: Connection, args: CommandArgs, token: int | str | None) -> BaseModel:
        if needs and not args.said:
            raise invalid([f"arguments[0]: {needs}"])
        asked = "\n\n".join(part for part in (text, args.said) if part)
        return await _run(c, args, token, RunRequest(asked, mode=mode, context=_context(args)))

    return run


async def research(c: Connection, args: CommandArgs, token: int | str | None) -> BaseModel:
    if not args.said:
        raise invalid(["arguments[0]: say what to find out"])
    return await _run(
        c, args, token, RunRequest(research_request(None, args.said), agent="researcher", mode="ask")
    )


async def new_chat(c: Connection, args: CommandArgs, _: int | str | None) -> BaseModel:
    return (await c.app()).journal.new_session(args.said, c.workspace_key)


async def undo(c: Connection, args: CommandArgs, _: int | str | None) -> BaseModel:
    app = await c.app()
    session = args.session_id or _newest(
        c, [s.session_id for s in app.journal.list_sessions("", 1, c.workspace_key)]
    )
    return api.FilesResult(files=await app.checkpoints.undo(session))


async def stop(c: Connection, args: CommandArgs, _: int | str | None) -> None:
    runs = (await c.app()).runs
    for run in (args.run_id,) if args.run_id else runs.running():
        await runs.cancel(run)


async def resume(c: Connection, args: CommandArgs, token: int | str | None) -> BaseModel:
    run = args.run_id
    if run is None:
        journal = (await c.app()).journal
        sessions = journal.list_sessions("", 50, c.workspace_key)
        open_ones = [s.session_id for s in sessions if s.status in ("interrupted", "paused")]
        chunks = journal.chunks(_newest(c, open_ones))
        run = next(k.run for k in reversed(chunks) if isinstance(k.event, RunStarted) and k.parent is None)
    token = await _token(c, token)
    return await resume_run(c, api.ResumeParams(run_id=run, work_done_token=token))


async def doctor(c: Connection, _: CommandArgs, __: int | str | None) -> BaseModel:
    """What there is, and what is wrong, as lines of text."""
    app = await c.app()
    lines = [f"Workspace: {', '.join(map(str, app.workspace.roots)) or 'none'}"]
    for offer in await app.models():
        state = f"{len(offer.models)} models" if offer.error is None else offer.error.message
        lines.append(f"{offer.provider}: {state}")
    try:
        lines.append(f"Model in use: {app.llm.resolve('').name}")
    except DaikuError as error:
        lines.append(f"No model can be used: {error.failure.message} {error.failure.hint}".strip())
    lines.append(f"Tools: {len(app.tools())}")
    text = "\n".join(lines)
    c.protocol.tell("window/showMessage", {"type": INFO, "message": text})
    return api.TextResult(text=text)


COMMANDS: dict[str, Command] = {
    "daiku.newChat": new_chat,
    "daiku.plan": prompt("", "plan", needs="say what to plan"),
    "daiku.research": research,
    "daiku.generateCode": prompt("", needs="say what to write"),
    "daiku.runCommands": prompt(
        "Run with shell/run what is asked for here, and report:", needs="say what to run"
    ),
    "daiku.explain": prompt("Explain this code: what it does, how, and what to watch out for.", "ask"),
    "daiku.fix": prompt("Find what is wrong here, fix it, and check that it works."),
    "daiku.writeTests": prompt("Write tests for this code in the way of this project, and run them."),
    "daiku.document": prompt("Write the documentation that this code lacks; change nothing else."),
    "daiku.review": prompt(
        "Review this code, or the uncommitted changes where no code is given: correctness first, with file and line.",
        "ask",
    ),
    "daiku.commitMessage": prompt(
        "Write a commit message for the staged changes (all changes where nothing is staged). Answer with it alone.",
        "ask",
    ),
    "daiku.undo": undo,
    "daiku.stop": stop,
    "daiku.resume": resume,
    "daiku.doctor": doctor,
}


async def _run(c: Connection, args: CommandArgs, token: int | str | None, request: RunRequest) -> BaseModel:
    token = await _token(c, token)
    params = api.RunStart(session_id=args.session_id, model=args.model, work_done_token=token)
    result = await start(c, params, request)
    if not c.offer.approvals:
        error = result.error
        text = result.text or (f"{error.message} {error.hint}".strip() if error else result.status)
        c.protocol.tell("window/showMessage", {"type": INFO, "message": shortened(text, SHOWN, c.words)})
    return result


async def _token(c: Connection, given: int | str | None) -> int | str | None:
    """The client's progress token, or one that we make where it shows progress."""
    if given is not None or not c.offer.progress:
        return given
    token: MessageId = f"daiku-{c.protocol.next_token}"
    try:
        await c.protocol.ask("window/workDoneProgress/create", {"token": token})
    except Refused:
        return None
    return str(token)


def _context(args: CommandArgs) -> tuple[ContextItem, ...]:
    if args.uri is None:
        return ()
    return (ContextItem(kind="selection" if args.range else "file", uri=args.uri, range=args.range),)


def _newest(c: Connection, sessions: list[str]) -> str:
    if not sessions:
        where = Path(c.workspace_key).name or "this window"
        raise UsageError(Failure(kind="not_found", message=f"There is no such conversation in {where}."))
    return sessions[0]

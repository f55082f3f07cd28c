"""`workspace/executeCommand`: Daiku's commands for every editor."""

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
from daiku.fronts.lsp.requests.context_items import LspDiagnostic, context_items
from daiku.fronts.lsp.requests.run_requests import document as revise
from daiku.fronts.lsp.requests.run_requests import resume as resume_run
from daiku.fronts.lsp.requests.run_requests import start_run
from daiku.fronts.lsp.wire.jsontext import MessageId, model_json
from daiku.fronts.lsp.wire.refused import CANCELLED, RpcError, invalid_params
from daiku.library.fronts import App, RunRequest, is_untitled, to_restore_result
from daiku.team.rules.drafting.headings import is_prose
from daiku.texts.text import Text, render, shortened, text
from daiku.tools.git.git import DiffArgs, LogArgs, StatusArgs, diff, log, status
from daiku.tools.tool import ToolContext

SUBJECTS = 12
"""Number of earlier commit subjects shown to the model."""
_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
_SUBJECT = re.compile(r"^    (\S.*)$", re.MULTILINE)


async def commit_message_request(app: App, uri: str | None, words: str) -> RunRequest:
    """Build the request for a commit message about the staged changes, or all changes if nothing is staged.

    `uri` selects the repository's folder. Raises UsageError if nothing has changed.
    """
    changes, subjects = await _changes(app, _folder(app, uri))
    context = [ContextItem(kind="text", text=changes)]
    if subjects:
        listed = "\n".join(subjects)
        context.append(ContextItem(kind="text", text=f"<earlier_commits>\n{listed}\n</earlier_commits>"))
    return RunRequest(words, agent="committer", mode="ask", context=tuple(context))


def extract_message(result: RunResult) -> RunResult:
    """Return the result with only the commit message as text.

    Raises the run's failure, or LLMRequestError if there is no message.
    """
    if result.error is not None:
        raise DaikuError(result.error)
    message = _FENCE.sub(r"\1", result.text.strip()).strip()
    if has_answer(result.status) and not message:
        raise LLMRequestError(
            Failure(kind="format", message=text("commit.no_message"), hint=text("commit.try_again"))
        )
    return result.model_copy(update={"text": Text(message)})


async def _changes(app: App, folder: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the changes to commit as text for the model, and the subjects of the last commits."""
    context = _context(app)
    staged = await diff(DiffArgs(staged=True, paths=folder), context)
    if not staged.ok:
        raise UsageError(Failure(kind="usage", message=Text(staged.text.strip())))
    changes, kind = _output(staged.data), "staged"
    if not changes:
        changes, kind = _output((await diff(DiffArgs(paths=folder), context)).data), "not staged"
        listed = _output((await status(StatusArgs(paths=folder), context)).data)
        if not changes and len(listed.splitlines()) < 2:  # the first line is the branch
            raise UsageError(
                Failure(
                    kind="usage", message=text("commit.nothing_changed"), hint=text("commit.change_first")
                )
            )
        changes = f"<status>\n{listed}\n</status>\n\n{changes}"
    recent = await log(LogArgs(limit=SUBJECTS), context)
    subjects = tuple(_SUBJECT.findall(recent.text)) if recent.ok else ()
    return f'<diff changes="{kind}">\n{changes}\n</diff>', subjects


def _output(data: JsonObject | None) -> str:
    output = (data or {}).get("output")
    return output.strip() if isinstance(output, str) else ""


def _folder(app: App, uri: str | None) -> tuple[str, ...]:
    """Return the repository's folder for the tools; a repository above the workspace needs no path."""
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


async def run_diagnostics(c: ClientConnection, _: api.Nothing | None = None) -> api.DoctorResult:
    """Return all diagnostics findings. Raises DaikuError if the settings are invalid."""
    app = await c.app()
    place = app.workspace.roots[0] if app.workspace.roots else None
    findings = [
        *check_machine(),
        *check_files(place, os.environ, trusted=c.offer.trusted is not False),
        *await check_app(app),
    ]
    return api.DoctorResult(findings=tuple(findings))


SHOWN = 3000
"""Maximum characters of an answer in a message box."""


class CommandArgs(Wire):
    """The argument of a command: a text, or this object. `range` is in the connection's position encoding."""

    text: str | None = None
    instruction: str | None = None
    ask: bool = False
    """The client may let the user edit the instruction first; others send it unchanged."""
    goal: str | None = None
    uri: str | None = None
    range: Range | None = None
    diagnostics: tuple[LspDiagnostic, ...] = ()
    """LSP diagnostics of the client."""
    context: tuple[ContextItem, ...] = ()
    session_id: str | None = None
    run_id: str | None = None
    model: str | None = None
    approvals: ClientApprovals | None = None

    @property
    def request_text(self) -> str:
        return self.text or self.instruction or self.goal or ""


class ExecuteParams(BaseModel):
    """LSP params; other keys are ignored."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    command: str
    arguments: tuple[Any, ...] = ()
    work_done_token: Annotated[int | str | None, Field(alias="workDoneToken")] = None
    partial_result_token: Annotated[int | str | None, Field(alias="partialResultToken")] = None


@dataclass(frozen=True, slots=True)
class ProgressTokens:
    """Progress tokens of a command: for its progress bar, and for the chunks of its run."""

    bar: int | str | None = None
    chunks: int | str | None = None


Command: TypeAlias = Callable[[ClientConnection, CommandArgs, ProgressTokens], Awaitable[BaseModel | None]]


async def execute(c: ClientConnection, params: Json) -> str:
    """Answer `workspace/executeCommand`. Raises RpcError, DaikuError, pydantic.ValidationError."""
    execute_params = ExecuteParams.model_validate(params if params is not None else {})
    command = COMMANDS.get(execute_params.command)
    if command is None:
        raise invalid_params([f"command: there is no command {execute_params.command!r}"])
    first = execute_params.arguments[0] if execute_params.arguments else None
    args = CommandArgs(text=first) if isinstance(first, str) else CommandArgs.model_validate(first or {})
    result = await command(
        c, args, ProgressTokens(execute_params.work_done_token, execute_params.partial_result_token)
    )
    return model_json(result.in_language(c.protocol.language) if isinstance(result, Localizable) else result)


def prompt_command(
    words: str,
    mode: Mode = "act",
    *,
    needs: str = "",
    look: bool = False,
    agent: str = "coordinator",
    changes: bool = False,
) -> Command:
    """Build a command that sends a prompt to `agent`: the text `words`, then the user's text, about a place.

    `look`: include the editor's problems at the place. `changes`: the prompt changes existing code, so the
    agent must also be able to run its tests, and is asked to.
    """

    async def run(c: ClientConnection, args: CommandArgs, tokens: ProgressTokens) -> BaseModel:
        if needs and not args.request_text:
            raise invalid_params([f"arguments[0]: {needs}"])
        trusted = c.offer.trusted is not False
        opening = render(text(words), c.protocol.language) if words else ""
        has_code = changes and trusted and (args.uri is not None or bool(args.context))
        follow_up = render(text("action.then_test"), c.protocol.language) if has_code else ""
        full_prompt = "\n\n".join(part for part in (opening, args.request_text, follow_up) if part)
        context = args.context
        if args.uri is not None:
            context += await context_items(c, args.uri, args.range, args.diagnostics, look=look)
        # An untrusted workspace permits no changes and commands.
        run_mode: Mode = mode if trusted else "ask"
        run_agent = agent if trusted and not has_code else "coordinator"
        return await _run_and_show(
            c, args, tokens, RunRequest(full_prompt, agent=run_agent, mode=run_mode, context=context)
        )

    return run


async def fix(c: ClientConnection, args: CommandArgs, tokens: ProgressTokens) -> BaseModel | None:
    """Fix the problems in a range, or a failed terminal command if one is given."""
    in_terminal = any(item.kind == "terminal" for item in args.context)
    words = "action.fix_terminal" if in_terminal else "action.fix"
    command = prompt_command(words, look=True, changes=not in_terminal)
    return await command(c, args, tokens)


async def document(c: ClientConnection, args: CommandArgs, tokens: ProgressTokens) -> BaseModel | None:
    """Revise prose with the drafting agents, or write missing documentation of code."""
    trusted = c.offer.trusted is not False
    code = args.uri is not None and not is_untitled(args.uri) and not is_prose(args.uri)
    if args.uri is None or code or not trusted:
        return await prompt_command("action.document", changes=True)(c, args, tokens)
    instruction = args.request_text or render(text("action.revise"), c.protocol.language)
    params = api.DocumentParams(
        uri=args.uri, instruction=instruction, range=args.range, **dict(await _start_params(c, args, tokens))
    )
    return _show_result(c, await revise(c, params))


async def research(c: ClientConnection, args: CommandArgs, tokens: ProgressTokens) -> BaseModel:
    if not args.request_text:
        raise invalid_params(["arguments[0]: say what to find out"])
    return await _run_and_show(c, args, tokens, RunRequest(args.request_text, agent="researcher", mode="ask"))


async def commit_message(c: ClientConnection, args: CommandArgs, tokens: ProgressTokens) -> BaseModel:
    words = "\n\n".join(
        part for part in (render(text("action.commit"), c.protocol.language), args.request_text) if part
    )
    result = await _run_to_result(
        c, args, tokens, await commit_message_request(await c.app(), args.uri, words)
    )
    if result.status == "cancelled":  # the client must keep its message box unchanged
        raise RpcError(CANCELLED, "The run was cancelled.")
    message = extract_message(result)
    _show_answer(c, message.text)
    return message


async def new_chat(c: ClientConnection, args: CommandArgs, _: ProgressTokens) -> BaseModel:
    return (await c.app()).journal.new_session(args.request_text, c.workspace_key)


async def undo(c: ClientConnection, args: CommandArgs, _: ProgressTokens) -> BaseModel:
    app = await c.app()
    session = args.session_id or _newest_session(
        c, [s.session_id for s in app.journal.list_sessions("", 1, c.workspace_key)]
    )
    outcome = await app.reviews.undo(session)
    if outcome.cannot_undo:
        commands = "\n".join(effect.command for effect in outcome.cannot_undo)
        _show_answer(c, f"{render(text('editor.stays'), c.protocol.language)}\n{commands}")
    return to_restore_result(outcome)


async def stop(c: ClientConnection, args: CommandArgs, _: ProgressTokens) -> None:
    runs = (await c.app()).runs
    for run in (args.run_id,) if args.run_id else runs.running():
        await runs.cancel(run)


async def resume(c: ClientConnection, args: CommandArgs, tokens: ProgressTokens) -> BaseModel:
    run = args.run_id
    if run is None:
        journal = (await c.app()).journal
        sessions = journal.list_sessions("", 50, c.workspace_key)
        open_ones = [s.session_id for s in sessions if s.status in ("interrupted", "paused")]
        chunks = journal.chunks(_newest_session(c, open_ones))
        run = next(k.run for k in reversed(chunks) if isinstance(k.event, RunStarted) and k.parent is None)
    token = await _progress_token(c, tokens.bar)
    params = api.ResumeParams(run_id=run, work_done_token=token, partial_result_token=tokens.chunks)
    return await resume_run(c, params)


async def doctor(c: ClientConnection, _: CommandArgs, __: ProgressTokens) -> BaseModel:
    """Show the diagnostics findings in a message, and return them as text."""
    roots = ", ".join(map(str, (await c.app()).workspace.roots))
    workspace = text("editor.workspace", paths=roots) if roots else text("editor.no_workspace")
    lines = [render(workspace, c.protocol.language)]
    findings = (await run_diagnostics(c)).in_language(c.protocol.language).findings
    lines += [
        " ".join(filter(None, (MARKS[finding.state], finding.what, finding.mend))) for finding in findings
    ]
    report = "\n".join(lines)
    c.protocol.notify("window/showMessage", {"type": INFO, "message": report})
    return api.TextResult(text=report)


MARKS = {"good": "✓", "note": "·", "bad": "✗"}

COMMANDS: dict[str, Command] = {
    "daiku.newChat": new_chat,
    "daiku.plan": prompt_command("", "plan", needs="say what to plan", agent="planner"),
    "daiku.research": research,
    "daiku.generateCode": prompt_command("", needs="say what to write", agent="coder", changes=True),
    "daiku.runCommands": prompt_command("", needs="say what to run", agent="runner"),
    "daiku.explain": prompt_command("action.explain", "ask"),
    "daiku.fix": fix,
    "daiku.writeTests": prompt_command("action.tests"),
    "daiku.document": document,
    "daiku.review": prompt_command("action.review", "ask"),
    "daiku.commitMessage": commit_message,
    "daiku.undo": undo,
    "daiku.stop": stop,
    "daiku.resume": resume,
    "daiku.doctor": doctor,
}


async def _run_and_show(
    c: ClientConnection, args: CommandArgs, tokens: ProgressTokens, request: RunRequest
) -> BaseModel:
    return _show_result(c, await _run_to_result(c, args, tokens, request))


def _show_result(c: ClientConnection, outcome: RunResult) -> RunResult:
    result = outcome.in_language(c.protocol.language)
    error = result.error
    _show_answer(c, result.text or (f"{error.message} {error.hint}".strip() if error else result.status))
    return result


async def _run_to_result(
    c: ClientConnection, args: CommandArgs, tokens: ProgressTokens, request: RunRequest
) -> RunResult:
    return await start_run(c, await _start_params(c, args, tokens), request)


async def _start_params(c: ClientConnection, args: CommandArgs, tokens: ProgressTokens) -> api.RunStart:
    return api.RunStart(
        session_id=args.session_id,
        model=args.model,
        approvals=args.approvals,
        work_done_token=await _progress_token(c, tokens.bar),
        partial_result_token=tokens.chunks,
    )


def _show_answer(c: ClientConnection, answer: str) -> None:
    """Show an answer in a message box if the client has no other place for it."""
    if not c.offer.approvals:
        c.protocol.notify(
            "window/showMessage", {"type": INFO, "message": shortened(answer, SHOWN, c.protocol.language)}
        )


async def _progress_token(c: ClientConnection, client_token: int | str | None) -> int | str | None:
    """Return the client's progress token, or create one if it shows progress."""
    if client_token is not None or not c.offer.progress:
        return client_token
    token: MessageId = f"daiku-{c.protocol.next_token}"
    try:
        await c.protocol.ask("window/workDoneProgress/create", {"token": token})
    except RpcError:
        return None
    return str(token)


def _newest_session(c: ClientConnection, sessions: list[str]) -> str:
    if not sessions:
        where = Path(c.workspace_key).name or text("editor.this_window")
        raise UsageError(Failure(kind="not_found", message=text("editor.no_conversation", where=where)))
    return sessions[0]

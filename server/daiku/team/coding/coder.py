"""The coder agent: writes files, edits, and patches through the tools that change files."""

from __future__ import annotations

import posixpath
import re

from daiku.dataclass import dataclass
from daiku.domain.base import Frozen, JsonObject
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, Message, ToolMessage, is_own
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief, EditsMade
from daiku.edits.rules.blocks import has_blocks
from daiku.edits.rules.fileblocks import parse_file_blocks, render_file_blocks
from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.patch import is_change, list_paths, parse_patch
from daiku.edits.rules.udiff import is_apply_patch, is_udiff
from daiku.models.rules.replies.parse import Unreadable
from daiku.prompts import render
from daiku.run.rules.state.state import State
from daiku.team.agent import LOOKING, Agent, Prompt
from daiku.team.coding.handover_text import fence, format_step, format_work_so_far
from daiku.team.part import Part, Stage
from daiku.team.role import Role, merge_role_calls, select_messages_since_request
from daiku.team.rules.plans.transitions import render_checklist
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, joined, text
from daiku.tools.rules.web.research import group_by_query

CHANGING = ("files/write", "files/edit", "files/patch", "files/move", "files/delete")
MAX_NOTES = 4000
_NO_CHANGE = lazy(
    r"\W*(?:no changes?(?: (?:is|are|was|were))?(?: (?:needed|required|necessary))?\W*[:：]"
    r"|変更(?:なし|無し|不要|は?不要|は?ありません|の必要は?(?:なし|ありません))(?:です)?[\W]*(?:[:：。]|$))",
    re.IGNORECASE | re.MULTILINE,
)
_FILE_HEAD = lazy(r"^[#>*\s]*File:\s*`[^`]+`", re.IGNORECASE | re.MULTILINE)
_FIRST_BLOCK = lazy(
    r"^(?:~~~|```|[#>*\s]*File:|(?:<{3,}|-{3,}) SEARCH|diff --git |--- |\*\*\* )",
    re.IGNORECASE | re.MULTILINE,
)


class CodeVariables(Frozen):
    """Template variables of the coder's request (R0.52); results are fenced already."""

    step_by_step_plan: str
    step: str
    user_context: str
    search_results: tuple[tuple[str, str], ...]
    notes: str
    happened: str
    code: str
    files: str


def build_code_request(brief: Brief) -> str:
    """Build the coder's request: plan, the user's request, and research findings (C0.10)."""
    results_by_query = group_by_query(brief.findings.results if brief.findings is not None else ())
    notes = brief.findings.notes if brief.findings is not None else ""
    return render(
        "agents/coder_request",
        CodeVariables(
            step_by_step_plan=fence(render_checklist(brief.plan)) if brief.plan is not None else "",
            step=format_step(brief.plan, brief.step_id),
            user_context=fence(brief.request),
            search_results=tuple((query, fence(result)) for query, result in results_by_query.items()),
            notes=fence(notes) if notes else "",
            happened=format_work_so_far(brief),
            code=brief.code,
            files=brief.files,
        ),
    ).strip()


def collect_edits(state: State) -> EditsMade | Unreadable:
    """Return the files that the run changed; if there are none, the notes say why."""
    replies = (
        m
        for m in select_messages_since_request(state.conversation.messages)
        if isinstance(m, AssistantMessage) and not is_own(m)
    )
    notes = "\n\n".join(m.text for m in replies if m.text)
    return EditsMade(
        files=state.done.files, checkpoints=state.done.checkpoints, notes=truncate_middle(notes, MAX_NOTES)
    )


def read(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """Return the reply with the calls that make its changes.

    Plain text is accepted after a change, or if it says that none is needed.
    """
    if message.calls:
        return merge_role_calls(message, _parse_form(message, cut))
    form = _parse_form(message, cut)
    if isinstance(form, AssistantMessage) or not message.text.strip():
        return form
    if _NO_CHANGE.match(message.text) or (form.words_only and not cut and _has_changes(messages)):
        return message
    return form


def accept_plain_text(message: AssistantMessage) -> AssistantMessage:
    """Accept a reply without edits as the result, with a note that nothing was changed."""
    words = joined("paragraphs", [message.text.strip(), text("roles.nothing_changed")])
    return message.model_copy(update={"text": words, "opaque": {}})


def judge_prose(message: AssistantMessage, messages: tuple[Message, ...]) -> AssistantMessage | Unreadable:
    """Accept plain text as the result; add a note if nothing was changed and the text does not say so."""
    return message if _has_changes(messages) else accept_plain_text(message)


def _parse_form(message: AssistantMessage, cut: bool) -> AssistantMessage | Unreadable:
    """Parse the changes in a reply's text into tool calls."""
    changes = parse_changes(message.text, cut=cut)
    if isinstance(changes, Unreadable):
        return changes
    data: JsonObject = {"whole": not changes.unfinished}
    return AssistantMessage(
        text=changes.reply, thinking=message.thinking, calls=changes.calls, opaque={"daiku": data}
    )


@dataclass(frozen=True, slots=True)
class ParsedChanges:
    """Changes in a reply: calls of tools that change files, and the text for the user."""

    calls: tuple[ToolCall, ...]
    reply: Text
    unfinished: bool = False


def parse_changes(reply_text: str, *, cut: bool = False) -> ParsedChanges | Unreadable:
    """Parse the changes in a text.

    One `File:` block becomes a files/write call, anything else one atomic files/patch call. Of a reply that was cut
    off, the complete files are used.
    """
    plain = not any(
        has_format(reply_text) for has_format in (has_blocks, is_apply_patch, is_udiff, _FILE_HEAD.search)
    )
    blocks = parse_file_blocks(reply_text)
    if blocks.doubtful:
        return Unreadable(joined("clauses", blocks.warnings))
    files = {path: content for path, content in blocks.files.items() if not is_change(path, content)}
    patch = blocks.rest if len(files) == len(blocks.files) else reply_text
    outside = tuple(path for path in files if _is_outside_project(path)) if len(files) > 1 else ()
    files = {path: content for path, content in files.items() if path not in outside} or files
    if not any(has_format(patch) for has_format in (has_blocks, is_apply_patch, is_udiff)):
        patch = ""
    names = list(files)
    if patch and not cut:
        intents = parse_patch(patch)
        if isinstance(intents, Refusal):
            return Unreadable(Text(intents.text))
        names += list_paths(intents)
    calls = _build_calls(files, patch if not cut else "")
    if not calls:
        problem = text("roles.write_fewer") if cut else joined("clauses", blocks.warnings)
        # A snippet without a file name is plain text.
        words = (plain or not problem) and bool(reply_text.strip())
        return Unreadable(problem or text("roles.no_files"), words_only=words)
    dropped = (text("files.outside_project", path=path) for path in outside if path not in files)
    notes = (*blocks.warnings, *dropped, *((text("roles.write_fewer"),) if cut else ()))
    parts = (
        _find_introduction(reply_text, names),
        "\n".join(f"- `{name}`" for name in names),
        *(text("roles.note", note=note) for note in notes),
    )
    unfinished = bool(cut or blocks.unclosed or blocks.outside)
    return ParsedChanges(calls, joined("paragraphs", parts), unfinished)


def _is_outside_project(path: str) -> bool:
    """Return True if a relative path leads out of the project."""
    return posixpath.normpath(path.replace("\\", "/")).split("/", 1)[0] == ".."


def _build_calls(files: dict[str, str], patch: str) -> tuple[ToolCall, ...]:
    """Build one call for all files, and separate ones for files whose paths may be rejected."""
    separate = {path: content for path, content in files.items() if path.startswith(("/", "~", ".git/"))}
    rest = {path: content for path, content in files.items() if path not in separate}
    writes = tuple(_build_write(path, content) for path, content in separate.items())
    if len(rest) == 1 and not patch:
        return (*(_build_write(path, content) for path, content in rest.items()), *writes)
    return (*_build_patch(rest, patch), *writes)


def _build_write(path: str, content: str) -> ToolCall:
    return ToolCall(tool="files/write", args={"path": path, "content": content})


def _build_patch(files: dict[str, str], patch: str) -> tuple[ToolCall, ...]:
    both = "\n\n".join(part for part in (render_file_blocks(files.items()), patch) if part)
    return (ToolCall(tool="files/patch", args={"patch": both}),) if both else ()


def _find_introduction(text: str, names: list[str]) -> str:
    """Return the reply's text before its first block, without lines that only name a file of a block."""
    lines = _FIRST_BLOCK.split(text, maxsplit=1)[0].splitlines()
    return "\n".join(line for line in lines if line.strip(" `*:") not in names).strip()


def continue_after_calls(messages: tuple[Message, ...]) -> AssistantMessage | None:
    """Return the coder's closing message once all its changes were applied without new problems, else None."""
    recent = select_messages_since_request(messages)
    reply = next((m for m in reversed(recent) if isinstance(m, AssistantMessage)), None)
    data = reply.opaque.get("daiku") if reply is not None else None
    if reply is None or not isinstance(data, dict) or data.get("whole") is not True:
        return None
    ids = {call.id for call in reply.calls}
    results = [m for m in recent if isinstance(m, ToolMessage) and m.call_id in ids]
    if len(results) != len(ids) or recent[-1] is reply:
        return None
    if not all(m.ok and not m.new_problems for m in results):
        return None
    return AssistantMessage(text=text("roles.changes_made"))


def _has_changes(messages: tuple[Message, ...]) -> bool:
    return any(
        isinstance(m, ToolMessage) and m.tool in CHANGING and m.ok
        for m in select_messages_since_request(messages)
    )


CODE = Role(
    read,
    continue_after_calls,
    accept_plain_text=accept_plain_text,
    prose=judge_prose,
    has_result=_has_changes,
)


CODER = Agent(
    "coder",
    Prompt("agents/coder"),
    tools=(*LOOKING, "files/*", "user/ask"),
    part=Part(
        label=Label("Coder", "コーダー"),
        description="writes and changes the project's files",
        role=CODE,
        knows_project=True,
        stage=Stage(collect_edits, build_code_request, shows="named"),
    ),
)

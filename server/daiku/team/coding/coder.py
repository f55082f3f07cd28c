"""The coder: writes whole files, edits and patches; every one goes through the tools that change files."""

from __future__ import annotations

import posixpath
import re

from daiku.dataclass import dataclass
from daiku.domain.base import Frozen, JsonObject
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, Message, ToolMessage, is_own
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief, EditsMade
from daiku.edits.rules.applypatch import is_apply_patch
from daiku.edits.rules.blocks import has_blocks
from daiku.edits.rules.fileblocks import parse_file_blocks, render_file_blocks
from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.patch import is_change, parse_patch, paths_of
from daiku.edits.rules.udiff import is_udiff
from daiku.models.rules.replies.parse import Unreadable
from daiku.prompts import render
from daiku.run.rules.state.state import State
from daiku.team.agent import LOOKING, Agent, Prompt
from daiku.team.coding.handover_text import fenced, step_line, work_so_far
from daiku.team.part import Part, Stage
from daiku.team.role import Role, merge_role_calls, messages_since_request
from daiku.team.rules.plans.transitions import checklist
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, joined, text
from daiku.tools.rules.web.research import by_query

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
    """What the coder is asked (R0.52); results are fenced already."""

    step_by_step_plan: str
    step: str
    user_context: str
    search_results: tuple[tuple[str, str], ...]
    notes: str
    happened: str
    code: str
    files: str


def code_request(brief: Brief) -> str:
    """The request to the coder: plan, the person's words, what research found (C0.10)."""
    found = by_query(brief.findings.results if brief.findings is not None else ())
    notes = brief.findings.notes if brief.findings is not None else ""
    return render(
        "team/coder_request",
        CodeVariables(
            step_by_step_plan=fenced(checklist(brief.plan)) if brief.plan is not None else "",
            step=step_line(brief.plan, brief.step_id),
            user_context=fenced(brief.request),
            search_results=tuple((query, fenced(result)) for query, result in found.items()),
            notes=fenced(notes) if notes else "",
            happened=work_so_far(brief),
            code=brief.code,
            files=brief.files,
        ),
    ).strip()


def edits_made(state: State) -> EditsMade | Unreadable:
    """Return the files that the run changed; if there are none, the notes say why."""
    said = (
        m
        for m in messages_since_request(state.conversation.messages)
        if isinstance(m, AssistantMessage) and not is_own(m)
    )
    notes = "\n\n".join(m.text for m in said if m.text)
    return EditsMade(
        files=state.done.files, checkpoints=state.done.checkpoints, notes=truncate_middle(notes, MAX_NOTES)
    )


def read(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """Return the reply with the calls that make its changes. Plain text counts after a change, or if it says that none
    is needed."""
    if message.calls:
        return merge_role_calls(message, _form(message, cut))
    found = _form(message, cut)
    if isinstance(found, AssistantMessage) or not message.text.strip():
        return found
    if _NO_CHANGE.match(message.text) or (found.words_only and not cut and _changed(messages)):
        return message
    return found


def accept_plain_text(message: AssistantMessage) -> AssistantMessage:
    """Accept a reply without edits as the result, with a note that nothing was changed."""
    said = joined("paragraphs", [message.text.strip(), text("roles.nothing_changed")])
    return message.model_copy(update={"text": said, "opaque": {}})


def prose(message: AssistantMessage, messages: tuple[Message, ...]) -> AssistantMessage | Unreadable:
    """Accept words as the result, with a note where nothing was changed and they do not say so themselves."""
    return message if _changed(messages) else accept_plain_text(message)


def _form(message: AssistantMessage, cut: bool) -> AssistantMessage | Unreadable:
    """The calls that make the changes which a reply's text asks for."""
    found = changes_in(message.text, cut=cut)
    if isinstance(found, Unreadable):
        return found
    told: JsonObject = {"whole": not found.unfinished}
    return AssistantMessage(
        text=found.said, thinking=message.thinking, calls=found.calls, opaque={"daiku": told}
    )


@dataclass(frozen=True, slots=True)
class Changes:
    """What a reply asks for: calls of the tools that change files, and what is said beside them."""

    calls: tuple[ToolCall, ...]
    said: Text
    unfinished: bool = False


def changes_in(written: str, *, cut: bool = False) -> Changes | Unreadable:
    """Parse the changes in a text: one `File:` block is a files/write call, anything else one files/patch call, all or
    nothing. Of a reply that was cut off, the complete files count."""
    plain = not any(holds(written) for holds in (has_blocks, is_apply_patch, is_udiff, _FILE_HEAD.search))
    blocks = parse_file_blocks(written)
    if blocks.doubtful:
        return Unreadable(joined("clauses", blocks.warnings))
    whole = {path: content for path, content in blocks.files.items() if not is_change(path, content)}
    patch = blocks.rest if len(whole) == len(blocks.files) else written
    refused = tuple(path for path in whole if _leaves_project(path)) if len(whole) > 1 else ()
    whole = {path: content for path, content in whole.items() if path not in refused} or whole
    if not any(holds(patch) for holds in (has_blocks, is_apply_patch, is_udiff)):
        patch = ""
    names = list(whole)
    if patch and not cut:
        intents = parse_patch(patch)
        if isinstance(intents, Refusal):
            return Unreadable(Text(intents.text))
        names += paths_of(intents)
    calls = _calls(whole, patch if not cut else "")
    if not calls:
        problem = text("roles.write_fewer") if cut else joined("clauses", blocks.warnings)
        words = (plain or not problem) and bool(written.strip())  # a snippet that names no file is words too
        return Unreadable(problem or text("roles.no_files"), words_only=words)
    dropped = (text("files.outside_project", path=path) for path in refused if path not in whole)
    odd = (*blocks.warnings, *dropped, *((text("roles.write_fewer"),) if cut else ()))
    said = (
        _prose(written, names),
        "\n".join(f"- `{name}`" for name in names),
        *(text("roles.note", note=each) for each in odd),
    )
    unfinished = bool(cut or blocks.unclosed or blocks.outside)
    return Changes(calls, joined("paragraphs", said), unfinished)


def _leaves_project(path: str) -> bool:
    """Return whether a relative path leads out of the project."""
    return posixpath.normpath(path.replace("\\", "/")).split("/", 1)[0] == ".."


def _calls(whole: dict[str, str], patch: str) -> tuple[ToolCall, ...]:
    """Return one call for everything, but separate ones for files whose paths may be refused."""
    apart = {path: content for path, content in whole.items() if path.startswith(("/", "~", ".git/"))}
    rest = {path: content for path, content in whole.items() if path not in apart}
    writes = tuple(_write(path, content) for path, content in apart.items())
    if len(rest) == 1 and not patch:
        return (*(_write(path, content) for path, content in rest.items()), *writes)
    return (*_patch(rest, patch), *writes)


def _write(path: str, content: str) -> ToolCall:
    return ToolCall(tool="files/write", args={"path": path, "content": content})


def _patch(whole: dict[str, str], patch: str) -> tuple[ToolCall, ...]:
    both = "\n\n".join(part for part in (render_file_blocks(whole.items()), patch) if part)
    return (ToolCall(tool="files/patch", args={"patch": both}),) if both else ()


def _prose(text: str, names: list[str]) -> str:
    """What the reply says before its first block; a line that only names a file belongs to the block."""
    lines = _FIRST_BLOCK.split(text, maxsplit=1)[0].splitlines()
    return "\n".join(line for line in lines if line.strip(" `*:") not in names).strip()


def after_calls(messages: tuple[Message, ...]) -> AssistantMessage | None:
    """Return the coder's closing message once all its changes were applied without new problems, else None."""
    here = messages_since_request(messages)
    spoke = next((m for m in reversed(here) if isinstance(m, AssistantMessage)), None)
    told = spoke.opaque.get("daiku") if spoke is not None else None
    if spoke is None or not isinstance(told, dict) or told.get("whole") is not True:
        return None
    ids = {call.id for call in spoke.calls}
    answers = [m for m in here if isinstance(m, ToolMessage) and m.call_id in ids]
    if len(answers) != len(ids) or here[-1] is spoke:
        return None
    if not all(m.ok and not m.new_problems for m in answers):
        return None
    return AssistantMessage(text=text("roles.changes_made"))


def _changed(messages: tuple[Message, ...]) -> bool:
    return any(
        isinstance(m, ToolMessage) and m.tool in CHANGING and m.ok for m in messages_since_request(messages)
    )


CODE = Role(read, after_calls, accept_plain_text=accept_plain_text, prose=prose, has_result=_changed)


CODER = Agent(
    "coder",
    Prompt("team/coder"),
    tools=(*LOOKING, "files/*", "user/ask"),
    part=Part(
        label=Label("Coder", "コーダー"),
        description="writes and changes the project's files",
        role=CODE,
        knows_project=True,
        stage=Stage(edits_made, code_request, shows="named"),
    ),
)

"""Convert chunks of a run to ACP session updates, live and for a reloaded session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from acp.helpers import ToolCallContentVariant, plan_entry, text_block, tool_content, tool_terminal_ref
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    Cost,
    CurrentModeUpdate,
    FileEditToolCallContent,
    PlanEntryStatus,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolKind,
    UsageUpdate,
    UserMessageChunk,
)

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure
from daiku.domain.events import (
    ApprovalAsked,
    Delta,
    Edit,
    MessageEvent,
    Notice,
    PlanEvent,
    RunFinished,
    RunStarted,
    Thinking,
    ToolCallEvent,
    ToolOutput,
    ToolResponse,
)
from daiku.domain.held import Todo
from daiku.domain.messages import Usage
from daiku.domain.runs import verdict_note
from daiku.domain.work.patches import FileChange
from daiku.domain.work.plans import WorkStatus
from daiku.edits.rules.matching.hunk import HunkLine
from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.udiff import FileDiff, parse_udiff
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.rules.visible import show_hidden
from daiku.texts.text import render
from daiku.tools.face import format_subject
from daiku.tools.table import collect_faces

Place = Callable[[str], str | None]
"""Return the absolute path of a file that a tool names, or None if it is outside the workspace."""

_KINDS: Mapping[str, ToolKind] = {
    "files/read": "read", "files/list": "search", "search/": "search", "editor/": "search",
    "files/write": "edit", "files/edit": "edit", "files/patch": "edit", "files/move": "move",
    "files/delete": "delete", "shell/": "execute", "git/commit": "execute", "git/": "read",
    "web/": "fetch", "plan/": "think", "task/": "think", "task_loop/": "think", "todo/": "think",
    "playbook/": "search", "agent/": "think", "agents/": "think", "tools/": "search",
}  # fmt: skip
"""ACP kind by tool name, or by namespace (with `/`)."""
MOST_TITLE = 200
"""Maximum characters of a title; a command may be a complete script."""


def kind_of(tool: str) -> ToolKind:
    """Return the ACP kind of a tool; `other` for tools of other packages and servers."""
    return _KINDS.get(tool) or _KINDS.get(f"{tool.partition('/')[0]}/", "other")


def title_of(tool: str, args: JsonObject, language: str) -> str:
    """Return a one-line description of the call, with hidden characters escaped."""
    face = collect_faces().get(tool)
    if face is None:
        return tool
    subject = " ".join(show_hidden(format_subject(face, args)).split())
    title = f"{face.label.text(language)} {subject}".strip()
    return title if len(title) <= MOST_TITLE else f"{title[: MOST_TITLE - 1]}…"


def locations_of(args: JsonObject, place: Place) -> list[ToolCallLocation]:
    """Return the files that a call names, with the line at which it begins to read."""
    line = args.get("start_line", args.get("line"))
    first = max(0, line) if isinstance(line, int) and not isinstance(line, bool) else None
    files = [(args.get("path"), first), (args.get("to"), None)]
    return [
        ToolCallLocation(path=path, line=start_line)
        for name, start_line in files
        if isinstance(name, str) and (path := place(name)) is not None
    ]


def places_of(paths: Iterable[str], place: Place) -> list[ToolCallLocation]:
    """Return the locations of changed files."""
    return [ToolCallLocation(path=path) for name in paths if (path := place(name)) is not None]


def file_differences(changes: Sequence[FileChange], place: Place) -> list[FileEditToolCallContent]:
    """Return changes as diffs of the complete texts."""
    return [
        FileEditToolCallContent(type="diff", path=path, old_text=change.old, new_text=change.new or "")
        for change in changes
        if (path := place(change.to or change.path)) is not None
    ]


def differences(diff: str, place: Place) -> list[FileEditToolCallContent]:
    """Convert a unified diff to ACP diffs, one per hunk; a new file has no old text."""
    if not diff:
        return []
    files = parse_udiff(diff)
    if isinstance(files, Refusal):
        return []
    return [content for file in files for content in _file_diffs(file, place)]


def _file_diffs(file: FileDiff, place: Place) -> Iterator[FileEditToolCallContent]:
    path = place(file.new or file.old or "")
    if path is None:
        return
    for hunk in file.hunks:
        old, new = _side_text(hunk.lines, "+"), _side_text(hunk.lines, "-")
        before = None if file.old is None else old
        yield FileEditToolCallContent(type="diff", path=path, old_text=before, new_text=new)


def _side_text(lines: Sequence[HunkLine], without: str) -> str:
    return "".join(f"{line.text}\n" for line in lines if line.tag != without)


Update: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | UsageUpdate
    | AvailableCommandsUpdate
    | CurrentModeUpdate
)
SHOWN = 8000
"""Maximum characters of a result that are shown."""
_STEPS: Mapping[WorkStatus, PlanEntryStatus] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
    "failed": "pending",
}
LastChanges = Callable[[Sequence[str]], Sequence[FileChange]]
"""Return the last changes of these files with their complete texts; empty if unknown."""


def _no_changes(_: Sequence[str]) -> Sequence[FileChange]:
    return ()


@dataclass(slots=True)
class _CallState:
    """What the client has received about one tool call."""

    output: str = ""
    content: list[ToolCallContentVariant] = field(default_factory=list["ToolCallContentVariant"])


@dataclass(slots=True)
class View:
    """Converts chunks to updates, in order.

    `replays`: the chunks come from the journal, so user messages are included and messages are complete.
    `window` is the model's context window in tokens, 0 if unknown.
    """

    language: str
    place: Place
    last_changes: LastChanges = _no_changes
    replays: bool = False
    window: int = 0
    _calls: dict[str, _CallState] = field(default_factory=dict[str, _CallState])
    _streamed: dict[str, str] = field(default_factory=dict[str, str])
    """Streamed text of the incomplete message, by run."""
    _thoughts: dict[str, str] = field(default_factory=dict[str, str])
    _messages: int = 0

    def updates(self, chunk: Chunk) -> Iterator[Update]:
        """Yield the updates for one chunk."""
        match chunk.in_language(self.language).event:
            case RunStarted(prompt=prompt) if self.replays and chunk.parent is None:
                yield _user_message(prompt)
            case Delta(text=text):
                self._streamed[chunk.run] = self._streamed.get(chunk.run, "") + text
                yield self._message(chunk, text)
            case Thinking(text=text):
                self._thoughts[chunk.run] = self._thoughts.get(chunk.run, "") + text
                yield self._thinking(chunk, text)
            case MessageEvent() as message:
                yield from self._whole_message(chunk, message)
            case ToolCallEvent(id=call, tool=tool, args=args):
                yield self.begin(call, tool, args, pending=False)
            case ApprovalAsked() as approval:
                yield self._request_approval(approval)
            case ToolOutput(id=call, text=text):
                yield from self._show_output(call, text)
            case ToolResponse() as response:
                yield from self._show_response(response)
            case Edit() as edit if edit.call_id:
                yield self._show_edit(edit)
            case PlanEvent(plan=plan):
                yield _plan(("❌ " * (s.status == "failed") + s.name, _STEPS[s.status]) for s in plan.steps)
            case Todo(items=items):
                yield _plan((item.title, item.status) for item in items)
            case Usage() as usage if not self.replays:
                yield from self._usage_update(usage)
            case Notice(level=level, text=text) if text and not self.replays:
                self._messages += 1
                yield self._thinking(chunk, text) if level == "info" else self.note(text)
            case Failure(message=message, hint=hint) if self.replays:
                yield self.note(f"{message} {hint}".strip())
            case RunFinished(reasons=reasons, unchecked=unchecked) if chunk.parent is None:
                if verdict := verdict_note(reasons, unchecked=unchecked):
                    yield self.note(render(verdict, self.language))
            case _:
                pass

    def note(self, text: str) -> Update:
        """Return a message of Daiku to the user."""
        return self.words(f"\n> ⚠ {text}\n\n")

    def words(self, text: str) -> Update:
        """Return a message with this text that no model wrote."""
        self._messages += 2
        key = f"own-{self._messages}"
        return AgentMessageChunk(
            session_update="agent_message_chunk", content=text_block(text), message_id=key
        )

    # ---- messages

    def _message(self, chunk: Chunk, text: str) -> Update:
        if chunk.parent is not None:  # a nested run's messages are addressed to its parent
            return self._thinking(chunk, text)
        return AgentMessageChunk(
            session_update="agent_message_chunk", content=text_block(text), message_id=self._id(chunk)
        )

    def _thinking(self, chunk: Chunk, text: str) -> Update:
        return AgentThoughtChunk(
            session_update="agent_thought_chunk",
            content=text_block(text),
            message_id=f"{self._id(chunk)}-thought",
        )

    def _id(self, chunk: Chunk) -> str:
        return f"{chunk.run}-{self._messages}"

    def _whole_message(self, chunk: Chunk, message: MessageEvent) -> Iterator[Update]:
        if message.role == "user":
            if message.reminder is None and chunk.parent is None:
                yield _user_message(message.text)
            return
        streamed, thought = self._streamed.pop(chunk.run, ""), self._thoughts.pop(chunk.run, "")
        if message.thinking and not thought:
            yield self._thinking(chunk, message.thinking)
        if message.text and not streamed:
            yield self._message(chunk, message.text)
        elif message.text.startswith(streamed) and len(message.text) > len(streamed):
            yield self._message(chunk, message.text[len(streamed) :])
        self._messages += 1

    # ---- tool calls

    def begin(self, call: str, tool: str, args: JsonObject, *, pending: bool) -> Update:
        """Return the update for a pending or running tool call."""
        self._messages += 1
        if call in self._calls:
            return ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=call,
                status="pending" if pending else "in_progress",
            )
        self._calls[call] = _CallState()
        return ToolCallStart(
            session_update="tool_call",
            tool_call_id=call,
            title=title_of(tool, args, self.language),
            kind=kind_of(tool),
            status="pending" if pending else "in_progress",
            locations=locations_of(args, self.place) or None,
            raw_input=args,
        )

    def _request_approval(self, approval: ApprovalAsked) -> Update:
        call = approval.call_id or approval.approval_id
        update = self.begin(call, approval.tool, approval.args, pending=True)
        if isinstance(update, ToolCallStart):
            update.content = list(self.preview(approval)) or None
        return update

    def preview(self, approval: ApprovalAsked) -> Sequence[ToolCallContentVariant]:
        """Return the content of an approval request: diffs for an edit, else its text."""
        contents: list[ToolCallContentVariant] = []
        if approval.why:
            contents.append(tool_content(text_block(approval.why)))
        diffs = differences(approval.preview, self.place) if approval.kind == "edit" else []
        contents += diffs
        if approval.preview and not diffs:
            contents.append(tool_content(text_block(truncate_middle(approval.preview, SHOWN))))
        return contents

    def attach(self, call: str, terminal: str) -> Iterator[Update]:
        """Attach the terminal of a call to its content."""
        state = self._calls.get(call)
        if state is not None:
            state.content.append(tool_terminal_ref(terminal))
            yield _progress(call, content=list(state.content))

    def _show_output(self, call: str, text: str) -> Iterator[Update]:
        state = self._calls.get(call)
        if state is not None:
            state.output = (state.output + text)[-SHOWN:]
            yield _progress(call, content=[*state.content, tool_content(text_block(state.output))])

    def _show_edit(self, edit: Edit) -> Update:
        state = self._calls.setdefault(edit.call_id, _CallState())
        paths = [stat.path for stat in edit.files]
        changes = self.last_changes(paths)
        state.content += file_differences(changes, self.place) or differences(edit.diff, self.place)
        update = _progress(edit.call_id, content=list(state.content))
        update.locations = places_of(paths, self.place) or None
        return update

    def _show_response(self, response: ToolResponse) -> Iterator[Update]:
        state = self._calls.pop(response.id, None)
        if state is None:
            return
        content = list(state.content)
        if response.result and (not content or not response.ok):
            content.append(tool_content(text_block(truncate_middle(response.result, SHOWN))))
        update = _progress(response.id, content=content)
        update.status = "completed" if response.ok else "failed"
        update.raw_output = response.data
        yield update

    def _usage_update(self, usage: Usage) -> Iterator[Update]:
        if self.window:
            cost = None if usage.cost is None else Cost(amount=usage.cost, currency="USD")
            used = usage.prompt_tokens + usage.completion_tokens
            yield UsageUpdate(session_update="usage_update", used=used, size=self.window, cost=cost)


def _progress(call: str, content: list[ToolCallContentVariant]) -> ToolCallProgress:
    return ToolCallProgress(session_update="tool_call_update", tool_call_id=call, content=content or None)


def _user_message(text: str) -> Update:
    return UserMessageChunk(session_update="user_message_chunk", content=text_block(text))


def _plan(entries: Iterable[tuple[str, PlanEntryStatus]]) -> Update:
    return AgentPlanUpdate(
        session_update="plan", entries=[plan_entry(content, status=status) for content, status in entries]
    )

"""What a run's chunks are in ACP: session updates, live and when a session is loaded again."""

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
from daiku.tools.face import subject_of
from daiku.tools.table import faces

Place = Callable[[str], str | None]
"""The absolute path of a file that a tool names; None where it is outside the workspace."""

_KINDS: Mapping[str, ToolKind] = {
    "files/read": "read", "files/list": "search", "search/": "search", "editor/": "search",
    "files/write": "edit", "files/edit": "edit", "files/patch": "edit", "files/move": "move",
    "files/delete": "delete", "shell/": "execute", "git/commit": "execute", "git/": "read",
    "web/": "fetch", "plan/": "think", "task/": "think", "task_loop/": "think", "todo/": "think",
    "playbook/": "search", "agent/": "think", "agents/": "think", "tools/": "search",
}  # fmt: skip
"""By a tool's name, or the room of it (with `/`)."""
MOST_TITLE = 200
"""Characters of a title: a command may be a whole script."""


def kind_of(tool: str) -> ToolKind:
    """The ACP kind of a tool; `other` for those of other packages and servers."""
    return _KINDS.get(tool) or _KINDS.get(f"{tool.partition('/')[0]}/", "other")


def title_of(tool: str, args: JsonObject, language: str) -> str:
    """Return what the call does in one line, with hidden characters as escapes."""
    face = faces().get(tool)
    if face is None:
        return tool
    subject = " ".join(show_hidden(subject_of(face, args)).split())
    whole = f"{face.label.text(language)} {subject}".strip()
    return whole if len(whole) <= MOST_TITLE else f"{whole[: MOST_TITLE - 1]}…"


def locations_of(args: JsonObject, place: Place) -> list[ToolCallLocation]:
    """The files that a call names, with the line where it begins to read."""
    line = args.get("start_line", args.get("line"))
    first = max(0, line) if isinstance(line, int) and not isinstance(line, bool) else None
    named = [(args.get("path"), first), (args.get("to"), None)]
    return [
        ToolCallLocation(path=path, line=at)
        for name, at in named
        if isinstance(name, str) and (path := place(name)) is not None
    ]


def places_of(paths: Iterable[str], place: Place) -> list[ToolCallLocation]:
    """The files that were changed."""
    return [ToolCallLocation(path=path) for name in paths if (path := place(name)) is not None]


def whole_differences(changes: Sequence[FileChange], place: Place) -> list[FileEditToolCallContent]:
    """Changes with the whole texts before and after."""
    return [
        FileEditToolCallContent(type="diff", path=path, old_text=change.old, new_text=change.new or "")
        for change in changes
        if (path := place(change.to or change.path)) is not None
    ]


def differences(diff: str, place: Place) -> list[FileEditToolCallContent]:
    """The parts of a unified diff: each hunk with its text before and after; of a new file without a text before."""
    if not diff:
        return []
    files = parse_udiff(diff)
    if isinstance(files, Refusal):
        return []
    return [content for file in files for content in _of_file(file, place)]


def _of_file(file: FileDiff, place: Place) -> Iterator[FileEditToolCallContent]:
    path = place(file.new or file.old or "")
    if path is None:
        return
    for hunk in file.hunks:
        old, new = _side(hunk.lines, "+"), _side(hunk.lines, "-")
        before = None if file.old is None else old
        yield FileEditToolCallContent(type="diff", path=path, old_text=before, new_text=new)


def _side(lines: Sequence[HunkLine], without: str) -> str:
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
"""Characters of a result that are shown; the whole of it is for the model."""
_STEPS: Mapping[WorkStatus, PlanEntryStatus] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
    "failed": "pending",
}
Written = Callable[[Sequence[str]], Sequence[FileChange]]
"""The changes of these files that were made last, with their whole texts; none where that is not known."""


def _nothing_known(_: Sequence[str]) -> Sequence[FileChange]:
    return ()


@dataclass(slots=True)
class _Call:
    """What the client was told of one tool call."""

    output: str = ""
    content: list[ToolCallContentVariant] = field(default_factory=list["ToolCallContentVariant"])


@dataclass(slots=True)
class View:
    """Makes updates from chunks, in order. `replays`: the chunks are from the journal, so that the person's own
    words are shown too, and each message is whole. `window`: tokens of the model's window, 0 where unknown."""

    language: str
    place: Place
    written: Written = _nothing_known
    replays: bool = False
    window: int = 0
    _calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    _said: dict[str, str] = field(default_factory=dict[str, str])
    """By run: what was streamed of the message that is being written."""
    _thought: dict[str, str] = field(default_factory=dict[str, str])
    _messages: int = 0

    def updates(self, chunk: Chunk) -> Iterator[Update]:
        """What the client is told of one chunk."""
        match chunk.in_language(self.language).event:
            case RunStarted(prompt=prompt) if self.replays and chunk.parent is None:
                yield _said_by_person(prompt)
            case Delta(text=text):
                self._said[chunk.run] = self._said.get(chunk.run, "") + text
                yield self._message(chunk, text)
            case Thinking(text=text):
                self._thought[chunk.run] = self._thought.get(chunk.run, "") + text
                yield self._thinking(chunk, text)
            case MessageEvent() as message:
                yield from self._whole_message(chunk, message)
            case ToolCallEvent(id=call, tool=tool, args=args):
                yield self.begin(call, tool, args, pending=False)
            case ApprovalAsked() as asked:
                yield self._asked(asked)
            case ToolOutput(id=call, text=text):
                yield from self._output(call, text)
            case ToolResponse() as response:
                yield from self._response(response)
            case Edit() as edit if edit.call_id:
                yield self._edited(edit)
            case PlanEvent(plan=plan):
                yield _plan(("❌ " * (s.status == "failed") + s.name, _STEPS[s.status]) for s in plan.steps)
            case Todo(items=items):
                yield _plan((item.title, item.status) for item in items)
            case Usage() as usage if not self.replays:
                yield from self._used(usage)
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
        """A message of Daiku itself to the person."""
        return self.words(f"\n> ⚠ {text}\n\n")

    def words(self, text: str) -> Update:
        """A message that no model wrote, as it is."""
        self._messages += 2
        key = f"own-{self._messages}"
        return AgentMessageChunk(
            session_update="agent_message_chunk", content=text_block(text), message_id=key
        )

    # ---- messages

    def _message(self, chunk: Chunk, text: str) -> Update:
        if chunk.parent is not None:  # what a nested run says is for the run around it
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
                yield _said_by_person(message.text)
            return
        streamed, thought = self._said.pop(chunk.run, ""), self._thought.pop(chunk.run, "")
        if message.thinking and not thought:
            yield self._thinking(chunk, message.thinking)
        if message.text and not streamed:
            yield self._message(chunk, message.text)
        elif message.text.startswith(streamed) and len(message.text) > len(streamed):
            yield self._message(chunk, message.text[len(streamed) :])
        self._messages += 1

    # ---- tool calls

    def begin(self, call: str, tool: str, args: JsonObject, *, pending: bool) -> Update:
        """A call is told of, or it is under way now."""
        self._messages += 1
        if call in self._calls:
            return ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=call,
                status="pending" if pending else "in_progress",
            )
        self._calls[call] = _Call()
        return ToolCallStart(
            session_update="tool_call",
            tool_call_id=call,
            title=title_of(tool, args, self.language),
            kind=kind_of(tool),
            status="pending" if pending else "in_progress",
            locations=locations_of(args, self.place) or None,
            raw_input=args,
        )

    def _asked(self, asked: ApprovalAsked) -> Update:
        call = asked.call_id or asked.approval_id
        update = self.begin(call, asked.tool, asked.args, pending=True)
        if isinstance(update, ToolCallStart):
            update.content = list(self.preview(asked)) or None
        return update

    def preview(self, asked: ApprovalAsked) -> Sequence[ToolCallContentVariant]:
        """What the person is asked about: the differences of an edit, else the words that say it."""
        found: list[ToolCallContentVariant] = []
        if asked.why:
            found.append(tool_content(text_block(asked.why)))
        shown = differences(asked.preview, self.place) if asked.kind == "edit" else []
        found += shown
        if asked.preview and not shown:
            found.append(tool_content(text_block(truncate_middle(asked.preview, SHOWN))))
        return found

    def attach(self, call: str, terminal: str) -> Iterator[Update]:
        """Show the terminal in which a call runs with the call."""
        told = self._calls.get(call)
        if told is not None:
            told.content.append(tool_terminal_ref(terminal))
            yield _progress(call, content=list(told.content))

    def _output(self, call: str, text: str) -> Iterator[Update]:
        told = self._calls.get(call)
        if told is not None:
            told.output = (told.output + text)[-SHOWN:]
            yield _progress(call, content=[*told.content, tool_content(text_block(told.output))])

    def _edited(self, edit: Edit) -> Update:
        told = self._calls.setdefault(edit.call_id, _Call())
        paths = [stat.path for stat in edit.files]
        changes = self.written(paths)
        told.content += whole_differences(changes, self.place) or differences(edit.diff, self.place)
        update = _progress(edit.call_id, content=list(told.content))
        update.locations = places_of(paths, self.place) or None
        return update

    def _response(self, response: ToolResponse) -> Iterator[Update]:
        told = self._calls.pop(response.id, None)
        if told is None:
            return
        content = list(told.content)
        if response.result and (not content or not response.ok):
            content.append(tool_content(text_block(truncate_middle(response.result, SHOWN))))
        update = _progress(response.id, content=content)
        update.status = "completed" if response.ok else "failed"
        update.raw_output = response.data
        yield update

    def _used(self, usage: Usage) -> Iterator[Update]:
        if self.window:
            cost = None if usage.cost is None else Cost(amount=usage.cost, currency="USD")
            used = usage.prompt_tokens + usage.completion_tokens
            yield UsageUpdate(session_update="usage_update", used=used, size=self.window, cost=cost)


def _progress(call: str, content: list[ToolCallContentVariant]) -> ToolCallProgress:
    return ToolCallProgress(session_update="tool_call_update", tool_call_id=call, content=content or None)


def _said_by_person(text: str) -> Update:
    return UserMessageChunk(session_update="user_message_chunk", content=text_block(text))


def _plan(entries: Iterable[tuple[str, PlanEntryStatus]]) -> Update:
    return AgentPlanUpdate(
        session_update="plan", entries=[plan_entry(content, status=status) for content, status in entries]
    )

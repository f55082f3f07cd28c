"""Tool calls as terminal lines: the call, its truncated output, its outcome, and its changes."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.events import Edit, Restored, Review, ToolCallEvent, ToolResponse
from daiku.domain.work.patches import FileStat, Irrevocable
from daiku.fronts.cli.display.diffs import coloured_diff
from daiku.fronts.cli.display.term import Terminal, clip, safe
from daiku.texts.terminal import locale_of, say
from daiku.tools.face import Face, format_subject
from daiku.tools.table import collect_faces

OUTPUT_LINES = 12
"""Maximum lines of live output; further lines are only counted."""
LAST_LINES = 5
"""Lines of the output's end that are shown when the tool has finished."""
RESULT_LINES = 4
"""Maximum lines of an error message."""
DIFF_LINES = 40
"""Maximum lines of a diff."""


@dataclass(slots=True)
class _CallLines:
    tool: str
    text: str
    face: Face | None = None
    lines: int = 0
    last: deque[str] = field(default_factory=lambda: deque[str](maxlen=LAST_LINES))
    edits: list[FileStat] = field(default_factory=list[FileStat])
    diffs: list[str] = field(default_factory=list[str])
    planned: bool = False


class ToolLines:
    """Prints tool calls with `line`. Calls may run in parallel, so every line names its call."""

    def __init__(self, terminal: Terminal, line: Callable[[str], None]) -> None:
        self._terminal = terminal
        self._line = line
        self._open: dict[str, _CallLines] = {}
        self._current = ""
        self._previewed: set[str] = set()

    @property
    def label(self) -> str:
        """Label of the running calls for a spinner; "" if there are none."""
        if not self._open:
            return ""
        first, more = next(iter(self._open.values())), len(self._open) - 1
        return f"{first.text} (+{more})" if more else first.text

    def mark_previewed(self, call_id: str) -> None:
        """Record that the user saw this call's changes in a preview, so that they are not printed again."""
        self._previewed.add(call_id)

    def mark_plan_shown(self) -> None:
        """Record that a plan or to-do list was printed, so that its tools need not print results."""
        for call in self._open.values():
            call.planned = call.planned or call.tool.startswith(("plan/", "todo/"))

    def on_call(self, event: ToolCallEvent, indent: str) -> None:
        call = self._open[event.id] = _CallLines(
            event.tool, safe(call_text(event.tool, event.args)), collect_faces().get(event.tool)
        )
        if call.face is None or call.face.slow:
            self._head(event.id, call, indent)

    def output(self, id_: str, text: str, indent: str) -> None:
        call = self._open.setdefault(id_, _CallLines("", ""))
        for line in safe(text.replace("\r\n", "\n").replace("\r", "\n")).removesuffix("\n").split("\n"):
            call.lines += 1
            if call.lines > OUTPUT_LINES:
                call.last.append(line)
                continue
            if self._current != id_:
                self._head(id_, call, indent)
            self._output_line(line, indent)

    def on_edit(self, event: Edit, indent: str) -> None:
        call = self._open.get(event.call_id)
        if call is None:
            for file in event.files:
                self._line(f"{indent}  {self._change(file)}")
            self._diff(event.diff, indent)
            return
        call.edits += event.files
        if event.diff and event.call_id not in self._previewed:
            call.diffs.append(event.diff)

    def on_response(self, event: ToolResponse, indent: str) -> None:
        call = self._open.pop(event.id, None) or _CallLines(
            event.tool, event.tool, collect_faces().get(event.tool)
        )
        if event.ok and (call.planned or (call.face is not None and call.face.answer == "nothing")):
            return
        if call.lines > OUTPUT_LINES and self._current != event.id:
            self._head(event.id, call, indent)
        hidden = call.lines - OUTPUT_LINES - len(call.last)
        if hidden > 0:
            self._output_line(say("more_lines", count=hidden), indent)
        for line in call.last:
            self._output_line(line, indent)
        self._ended(event, call, indent)
        self._current = ""
        for diff in call.diffs:
            self._diff(diff, indent)

    def _head(self, id_: str, call: _CallLines, indent: str) -> None:
        self._current = id_
        what = clip(call.text, self._terminal.width - 3 - len(indent))
        self._line(indent + self._terminal.paint("● ", "blue") + self._terminal.paint(what, "bold"))

    def _output_line(self, line: str, indent: str) -> None:
        clipped = clip(line, self._terminal.width - 5 - len(indent))
        self._line(indent + self._terminal.paint(f"  │ {clipped}", "dim"))

    def _ended(self, event: ToolResponse, call: _CallLines, indent: str) -> None:
        """Print the outcome on one line, then errors or changes; name the call unless it is right above."""
        paint, is_below_head = self._terminal.paint, self._current == event.id
        mark = paint("✓", "green") if event.ok else paint("✗", "red")
        duration = f"{event.duration_ms / 1000:.1f} s" if event.duration_ms >= 100 else ""
        lines = [line for line in safe(event.result).split("\n") if line.strip()]
        has_single_edit = len(call.edits) == 1 and call.edits[0].path in call.text.split()
        if has_single_edit:
            summary = self._change(call.edits[0], path=False)
        elif event.ok:
            summary = "" if call.edits else _summary(call, lines)
        else:
            summary = lines[0] if is_below_head and lines else ""
        width = self._terminal.width - 4 - len(indent)
        name = "" if is_below_head else clip(call.text, max(20, width - 30))
        rest = " · ".join(
            part
            for part in (
                (
                    summary
                    if has_single_edit
                    else clip(summary, max(12, width - len(name) - len(duration) - 6))
                ),
                duration,
            )
            if part
        )
        styled = rest if has_single_edit else paint(rest, "dim" if event.ok else "red")
        head = f"{indent}{'  ' if is_below_head else ''}{mark}"
        self._line(" ".join(part for part in (head, paint(name, "bold"), styled) if part))
        if not event.ok:
            more = 0 if is_below_head else 1
            for line in lines[1 - more :][: more if call.lines else RESULT_LINES]:
                self._line(f"{indent}    " + paint(clip(line, width - 2), "red"))
        elif not has_single_edit:
            for file in call.edits:
                self._line(f"{indent}    {self._change(file)}")

    def _change(self, file: FileStat, *, path: bool = True) -> str:
        added = self._terminal.paint(f"+{file.added}", "green")
        removed = self._terminal.paint(f"-{file.removed}", "red")
        kind = "" if file.kind == "edit" else say(f"change.{file.kind}")
        return " ".join(part for part in (safe(file.path) if path else "", added, removed, kind) if part)

    def _diff(self, diff: str, indent: str) -> None:
        if diff:
            for text in coloured_diff(diff, self._terminal, DIFF_LINES):
                self._line(f"{indent}    {text}")


def _summary(call: _CallLines, lines: list[str]) -> str:
    """Return a short summary of a successful result; empty if its output was shown."""
    if call.lines or not lines:
        return ""
    if len(lines) > 1 and call.face is not None and call.face.answer == "size":
        return say("lines", count=len(lines))
    return lines[0]


def call_text(tool: str, args: JsonObject) -> str:
    """Return a call as one line: action and subject, or the name and short arguments of an external tool."""
    face = collect_faces().get(tool)
    if face is not None:
        return f"{face.label.text(locale_of(os.environ))} {format_subject(face, args)}".rstrip()
    short = {k: v for k, v in args.items() if isinstance(v, str | int | float | bool) and "\n" not in str(v)}
    return f"{tool} {', '.join(f'{k}={v}' for k, v in short.items())}".rstrip()


def decision_text(event: Review | Restored) -> str:
    """Return the user's decision on changes as one line."""
    match event:
        case Review(decision="accept", path=path):
            return say("review.accept", path=path)
        case Review(path=path):
            return say("review.reject", path=path)
        case Restored(files=files):
            return say("restored", files=", ".join(file.path for file in files))


def irrevocable_lines(stays: Sequence[Irrevocable]) -> list[str]:
    """Return the effects that restoring files did not undo, under a heading; empty if there are none."""
    if not stays:
        return []
    lines = [say("stays")]
    for effect in stays:
        code = "" if effect.exit_code is None else f"  ({say('stays.code', code=effect.exit_code)})"
        lines.append(f"  {safe(effect.command)}{code}")
    return lines

"""A run as a person watches it in the terminal: text as it streams, tools with their output, costs."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import assert_never

from daiku.cli.diffs import coloured_diff
from daiku.cli.markdown import Markdown
from daiku.cli.term import Terminal, clip, safe
from daiku.cli.texts import say
from daiku.domain.base import JsonObject
from daiku.domain.events import (
    AgentEnd,
    AgentStart,
    ApprovalAsked,
    ApprovalGiven,
    BulletChanged,
    Checkpointed,
    Chunk,
    Compacted,
    Delta,
    Edited,
    ErrorHappened,
    HandoffEnd,
    HandoffStart,
    InputAsked,
    InputGiven,
    MessageSaid,
    Notice,
    PlanChanged,
    RunFinished,
    RunStarted,
    Thinking,
    ToolCalled,
    ToolOutput,
    ToolResponded,
    Used,
)
from daiku.domain.messages import Usage
from daiku.domain.plans import Plan

OUTPUT_LINES = 12
"""Lines of a tool's live output that are shown before the rest is only counted."""
LAST_LINES = 5
"""Lines of its end that are shown when it is over."""
RESULT_LINES = 4
DIFF_LINES = 40
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
MARKS = {"pending": "☐", "in_progress": "▶", "completed": "☑", "failed": "☒"}


class Show:
    """Prints chunks as they come. Not for replaying a journal at speed: see `transcript`."""

    def __init__(
        self, terminal: Terminal, clock: Callable[[], float] = time.monotonic, *, animated: bool = True
    ) -> None:
        """`animated` off where a person may be typing: a spinner would write over their line."""
        self._terminal = terminal
        self._animated = animated and terminal.live
        self._markdown = Markdown(terminal)
        self._clock = clock
        self._spinner: asyncio.Task[None] | None = None
        self._drawn = False
        self._label = ""
        self._since = clock()
        self._open_line = False
        self._streamed = False
        self._lines: dict[str, int] = {}
        self._last: dict[str, deque[str]] = {}
        self._previewed: set[str] = set()
        self._silent = False

    def __call__(self, chunk: Chunk) -> None:
        """Show one chunk."""
        indent = "  " if chunk.parent else ""
        event = chunk.event
        match event:
            case RunStarted(model=model, mode=mode):
                if not chunk.parent:
                    self.line(self._terminal.paint(f"{safe(model)} · {mode}", "dim"))
                self.wait(say("waiting"))
            case Delta(text=text):
                self._stream(text)
            case Thinking():
                self.wait(say("thinking"))
            case MessageSaid(role="assistant", text=text, calls=calls):
                self._message(text)
                self.wait(say("running") if calls else "")
            case MessageSaid():
                self.wait(self._label)
            case ToolCalled(tool=tool, args=args, id=id_):
                self._lines[id_] = 0
                what = clip(safe(call_text(tool, args)), self._terminal.width - 4 - len(indent))
                self.line(indent + self._terminal.paint("● ", "blue") + self._terminal.paint(what, "bold"))
                self.wait(say("running"))
            case ToolOutput(id=id_, text=text):
                self._output(id_, text, indent)
            case ToolResponded():
                self._response(event, indent)
                self.wait(say("waiting"))
            case Edited():
                self._edited(event, indent)
            case PlanChanged(plan=plan):
                self._plan(plan)
            case Notice(level=level, text=text):
                self.line(indent + self._terminal.paint(safe(text), "dim" if level == "info" else "yellow"))
            case ErrorHappened(message=message, hint=hint, retryable=retryable):
                if retryable or chunk.parent:  # what ends the run is said at its end
                    self.line(indent + self._terminal.paint(safe(f"{message} {hint}".strip()), "yellow"))
            case HandoffStart(to=to, request=request):
                self.line(
                    self._terminal.paint(f"→ {safe(to)}: ", "magenta")
                    + clip(safe(request), self._terminal.width - 12)
                )
            case HandoffEnd():
                self.line(self._terminal.paint(f"← {safe(event.source)}", "magenta"))
            case Compacted(before_tokens=before, after_tokens=after):
                self.line(self._terminal.paint(f"… {before:,} → {after:,} tokens", "dim"))
            case RunFinished():
                self.wait("")
                self._end_stream()
            case BulletChanged(content=content, change=change):
                self.line(self._terminal.paint(f"  {safe(change)}: {clip(safe(content), 100)}", "dim"))
            case ApprovalAsked() | InputAsked():
                self._previewed.add(event.call_id)
                self.wait("")
            case ApprovalGiven() | InputGiven() | AgentStart() | AgentEnd() | Checkpointed() | Used():
                pass
            case _:
                assert_never(event)

    def line(self, text: str) -> None:
        """Print a line of its own."""
        self._end_stream()
        self._erase()
        self._terminal.write(text + "\n")

    def diff(self, diff: str, limit: int = DIFF_LINES) -> None:
        """Print a unified diff in colours, at most `limit` lines (0: all)."""
        if diff:
            for text in coloured_diff(diff, self._terminal, limit):
                self.line("  " + text)

    def raw(self, text: str) -> None:
        """Print as it is, at the cursor."""
        self._erase()
        self._terminal.write(text)

    def wait(self, label: str) -> None:
        """Show that something is going on; "" shows nothing any more."""
        if label != self._label:
            self._since = self._clock()
        self._label = label
        if not label:
            self._erase()
        elif self._animated and self._spinner is None:
            self._spinner = asyncio.get_running_loop().create_task(self._spin())

    def stop(self) -> None:
        """End the spinner and a line that was begun."""
        self.wait("")
        self._end_stream()
        if self._spinner is not None:
            self._spinner.cancel()
            self._spinner = None

    def quiet(self, *, silent: bool) -> None:
        """Draw no spinner while a person is asked something."""
        self._silent = silent
        if silent:
            self._end_stream()
            self._erase()

    # -- text -----------------------------------------------------------------------------

    def _stream(self, text: str) -> None:
        shown = self._markdown.feed(safe(text))
        self._streamed = True
        if shown:
            self._erase()
            self._terminal.write(shown)
            self._open_line = not shown.endswith("\n")

    def _message(self, text: str) -> None:
        """The whole message closes its deltas; one that did not stream is shown now."""
        if not self._streamed and text:
            self._stream(text)
        self._end_stream()

    def _end_stream(self) -> None:
        rest = self._markdown.close() if self._streamed else ""
        if rest:
            self._erase()
            self._terminal.write(rest)
            self._open_line = True
        self._streamed = False
        if self._open_line:
            self._terminal.write("\n")
            self._open_line = False

    # -- tools ----------------------------------------------------------------------------

    def _output(self, id_: str, text: str, indent: str) -> None:
        for line in safe(text.replace("\r\n", "\n").replace("\r", "\n")).removesuffix("\n").split("\n"):
            count = self._lines[id_] = self._lines.get(id_, 0) + 1
            if count <= OUTPUT_LINES:
                self._output_line(line, indent)
            else:
                self._last.setdefault(id_, deque(maxlen=LAST_LINES)).append(line)

    def _output_line(self, line: str, indent: str) -> None:
        self.line(indent + self._terminal.paint("  │ " + clip(line, self._terminal.width - 5), "dim"))

    def _response(self, event: ToolResponded, indent: str) -> None:
        shown = self._lines.pop(event.id, 0)
        last = self._last.pop(event.id, ())
        if shown > OUTPUT_LINES + len(last):
            self._output_line(say("more_lines", count=shown - OUTPUT_LINES - len(last)), indent)
        for line in last:
            self._output_line(line, indent)
        took = f" {event.duration_ms / 1000:.1f} s" if event.duration_ms >= 100 else ""
        lines = [line for line in safe(event.result).split("\n") if line.strip()]
        if event.ok:
            summary = clip(lines[0], self._terminal.width - 16) if lines and not shown else ""
            self.line(
                indent
                + self._terminal.paint("  ✓", "green")
                + self._terminal.paint(f"{took} {summary}".rstrip(), "dim")
            )
            return
        self.line(indent + self._terminal.paint("  ✗", "red") + self._terminal.paint(took, "dim"))
        for line in lines[: 1 if shown else RESULT_LINES]:
            self.line(indent + "    " + self._terminal.paint(clip(line, self._terminal.width - 6), "red"))

    def _edited(self, event: Edited, indent: str) -> None:
        for file in event.files:
            added = self._terminal.paint(f"+{file.added}", "green")
            removed = self._terminal.paint(f"-{file.removed}", "red")
            kind = "" if file.kind == "edit" else file.kind
            self.line(f"{indent}  {safe(file.path)} {added} {removed} {kind}".rstrip())
        if event.call_id not in self._previewed:
            self.diff(event.diff)

    def _plan(self, plan: Plan) -> None:
        done, total = plan.progress()
        self.line(
            self._terminal.paint(say("plan.progress", name=safe(plan.name), done=done, all=total), "bold")
        )
        for step in plan.steps:
            mark = MARKS[step.status]
            text = f"  {mark} {clip(safe(step.name), self._terminal.width - 6)}"
            self.line(self._terminal.paint(text, "dim") if step.status == "completed" else text)

    # -- spinner --------------------------------------------------------------------------

    async def _spin(self) -> None:
        frame = 0
        while True:
            await asyncio.sleep(0.1)
            if self._label and not self._silent and not self._open_line and not self._streamed:
                seconds = int(self._clock() - self._since)
                took = f" {seconds} s" if seconds >= 2 else ""
                text = clip(f"{FRAMES[frame % len(FRAMES)]} {self._label}{took}", self._terminal.width - 1)
                self._terminal.write(f"\r\x1b[K{self._terminal.paint(text, 'dim')}")
                self._drawn = True
                frame += 1

    def _erase(self) -> None:
        if self._drawn:
            self._terminal.write("\r\x1b[K")
            self._drawn = False


def call_text(tool: str, args: JsonObject) -> str:
    """A call in one line: the tool and what it is about."""
    for name in ("command", "path", "pattern", "url", "query", "question", "name", "goal", "id"):
        value = args.get(name)
        if isinstance(value, str) and value:
            return f"{tool} {value}"
    rest = ", ".join(f"{k}={v}" for k, v in args.items() if isinstance(v, str | int | float | bool))
    return f"{tool} {rest}".rstrip()


def usage_text(usage: Usage, seconds: float = 0) -> str:
    """Tokens, cost and time in one line."""
    cached = say("usage.cached", cached=f"{usage.cached_tokens:,}") if usage.cached_tokens else ""
    parts = [
        say("usage", prompt=f"{usage.prompt_tokens:,}{cached}", completion=f"{usage.completion_tokens:,}"),
        f"${usage.cost:.4f}" if usage.cost else "",
        f"{seconds:.1f} s" if seconds else "",
    ]
    return " · ".join(part for part in parts if part)

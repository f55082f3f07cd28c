"""Live display of a run in the terminal: streamed text, tool calls with output, costs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, assert_never

from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    CheckpointEvent,
    Delta,
    Edit,
    HandoffEnd,
    HandoffStart,
    InputAsked,
    InputGiven,
    MessageEvent,
    Notice,
    PlanEvent,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    Thinking,
    ToolCallEvent,
    ToolOutput,
    ToolResponse,
)
from daiku.domain.held import Compacted, Pruned, Todo, TodoItem
from daiku.domain.labels import LineEvent
from daiku.domain.messages import Usage
from daiku.domain.work.plans import Plan
from daiku.fronts.cli.display.markdown import Markdown
from daiku.fronts.cli.display.term import Terminal, clip, safe, split_unfinished
from daiku.fronts.cli.display.toollines import ToolLines, decision_text
from daiku.texts.terminal import locale_of, say

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
Section: TypeAlias = Literal["", "text", "tools"]
PATIENCE = 5
"""Seconds of waiting after which the user is told how to stop."""
MARKS = {"pending": "☐", "in_progress": "▶", "completed": "☑", "failed": "☒"}

StatusEvent: TypeAlias = Notice | Failure | HandoffStart | HandoffEnd | Review | Restored


class Show:
    """Prints chunks as they arrive. To print a recorded journal, use `transcript`."""

    def __init__(
        self,
        terminal: Terminal,
        clock: Callable[[], float] = time.monotonic,
        *,
        talking: bool = False,
        omits_answer: bool = False,
    ) -> None:
        """Initialize an empty display.

        `talking`: the user may be typing, so lines are not redrawn and the model is not named.
        `omits_answer`: the answer is written elsewhere.
        """
        self._terminal = terminal
        self._talking = talking
        self._omits_answer = omits_answer
        self._markdown = Markdown(terminal)
        self._clock = clock
        self._spinner: asyncio.Task[None] | None = None
        self._drawn = False
        self._label = ""
        self._since = clock()
        self._open_line = False
        self._streamed = False
        self._unfinished = ""
        self._tools = ToolLines(terminal, self._tool_line)
        self._section: Section = ""
        self._silent = False
        self._held = ""
        self._plans: dict[str, Plan] = {}
        self._ways: set[str] = set()
        self._todo_items: tuple[TodoItem, ...] = ()

    def __call__(self, chunk: Chunk) -> None:
        """Show one chunk."""
        indent = "  " if chunk.parent else ""
        event = chunk.event
        match event:
            case RunStarted():
                self._begin(event, nested=bool(chunk.parent))
            case Delta(text=text):
                if not self._omits_answer:
                    self._stream(text)
            case Thinking():
                self.wait(say("thinking"))
            case MessageEvent():
                self._show_message(event, nested=bool(chunk.parent))
            case ToolCallEvent():
                self._tools.on_call(event, indent)
                self.wait(self._tools.label)
            case ToolOutput(id=id_, text=text):
                self._tools.output(id_, text, indent)
            case ToolResponse():
                self._tools.on_response(event, indent)
                self.wait(self._tools.label or say("waiting"))
            case Edit():
                self._tools.on_edit(event, indent)
            case PlanEvent(plan=plan):
                self._plan(plan)
            case Todo(items=items):
                self._todo(items)
            case Compacted() | Pruned():
                sizes = f"… {event.before_tokens:,} → {event.after_tokens:,} tokens"
                self.line(self._terminal.paint(sizes, "dim"))
            case Notice() | Failure() | HandoffStart() | HandoffEnd() | Review() | Restored():
                self._status_line(event, indent)
            case RunFinished():
                self._finish(event, nested=bool(chunk.parent))
            case LineEvent():
                self._one_line(event, indent)
            case ApprovalAsked() | InputAsked():
                self._tools.mark_previewed(event.call_id)
                self.wait("")
            case ApprovalGiven() | InputGiven() | CheckpointEvent() | Usage():
                pass
            case _:
                assert_never(event)

    def _show_message(self, event: MessageEvent, *, nested: bool) -> None:
        self._show_held()  # the run continues, so it was not the answer
        if event.role != "assistant":
            self.wait(self._label)
            return
        if self._omits_answer and not (event.calls or nested or event.partial):
            self._held = event.text
        else:
            self._message(event.text, cut_off=event.partial)
        self.wait(say("running") if event.calls else "")

    def _show_held(self) -> None:
        if self._held:
            self._message(self._held, cut_off=False)
            self._held = ""

    def _begin(self, event: RunStarted, *, nested: bool) -> None:
        if not nested and not self._talking:
            script = f" ({say('scripted')})" if _is_scripted(event.model) else ""
            self.line(self._terminal.paint(f"{safe(event.model)}{script} · {event.mode}", "dim"))
        if not nested:
            self._lessons("told", [lesson.id for lesson in event.lessons])
        self.wait(say("waiting"))

    def _finish(self, event: RunFinished, *, nested: bool) -> None:
        self.wait("")
        if not nested and self._held != event.text:
            self._show_held()
        self._end_stream()
        if not nested:
            self._lessons("used", event.used_bullets)

    def _lessons(self, what: Literal["told", "used"], ids: Sequence[str]) -> None:
        """Print the number and ids of the lessons that a run received or used."""
        if ids:
            key = f"lessons.{what}" if len(ids) > 1 else f"lessons.{what}_one"
            line = say(key, count=len(ids), ids=", ".join(ids))
            self.line(self._terminal.paint(clip(safe(line), self._terminal.width - 2), "dim"))

    def _status_line(self, event: StatusEvent, indent: str) -> None:
        paint = self._terminal.paint
        match event:
            case Notice(level=level, text=text):
                self.line(indent + paint(safe(text), "dim" if level == "info" else "yellow"))
            case Failure(message=message, hint=hint):
                if indent:  # the run's own failure is reported at its end
                    self.line(indent + paint(safe(f"{message} {hint}".strip()), "yellow"))
            case HandoffStart(to=to, request=request):
                request_line = clip(safe(request), self._terminal.width - 12)
                self.line(paint(f"→ {safe(to)}: ", "magenta") + request_line)
            case HandoffEnd():
                self.line(paint(f"← {safe(event.to)}", "magenta"))
            case Review() | Restored():
                self.line(indent + paint(safe(decision_text(event)), "dim"))

    def _one_line(self, event: LineEvent, indent: str) -> None:
        """Print an event's line, and each of its hints once."""
        line, *hints = event.line_in(locale_of(os.environ)).split("\n")
        new_hints = [hint for hint in hints if hint not in self._ways]
        self._ways.update(new_hints)
        for text_line in filter(None, (line, *new_hints)):
            self.line(indent + self._terminal.paint(clip(safe(text_line), self._terminal.width - 4), "dim"))

    def line(self, text: str) -> None:
        """Print a separate line."""
        self._section = ""
        self._print(text)

    def _tool_line(self, text: str) -> None:
        self._end_stream()
        self._apart("tools")
        self._print(text)

    def _apart(self, section: Section) -> None:
        """Print a blank line between text and tool calls."""
        if self._section not in ("", section):
            self._print("")
        self._section = section

    def _print(self, text: str) -> None:
        self._end_stream()
        self._erase()
        self._terminal.write(text + "\n")

    def raw(self, text: str) -> None:
        """Print text unchanged at the cursor."""
        self._erase()
        self._terminal.write(text)

    def wait(self, label: str) -> None:
        """Show the spinner with this label; "" hides it."""
        if label != self._label:
            self._since = self._clock()
        self._label = label
        if not label:
            self._erase()
        elif self._terminal.live and self._spinner is None:
            self._spinner = asyncio.get_running_loop().create_task(self._spin())

    def stop(self) -> None:
        """Stop the spinner and end an unfinished line."""
        self.wait("")
        self._end_stream()
        if self._spinner is not None:
            self._spinner.cancel()
            self._spinner = None

    def quiet(self, *, silent: bool) -> None:
        """Disable or enable the spinner, for example during a question."""
        self._silent = silent
        if silent:
            self._end_stream()
            self._erase()

    # -- text -----------------------------------------------------------------------------

    def _stream(self, text: str) -> None:
        complete, self._unfinished = split_unfinished(self._unfinished + text)
        output = self._markdown.feed(safe(complete))
        if not self._streamed and text.strip():
            self._apart("text")
        self._streamed = True
        if output:
            self._erase()
            self._terminal.write(output)
            self._open_line = not output.endswith("\n")

    def _message(self, text: str, *, cut_off: bool) -> None:
        """Print a message that was not streamed, or end the stream of its deltas."""
        if not self._streamed and text:
            self._stream(text)
        self._end_stream()
        if cut_off:
            self.line(self._terminal.paint(say("cut_off"), "yellow"))

    def _end_stream(self) -> None:
        rest = self._markdown.feed(safe(self._unfinished)) + self._markdown.close() if self._streamed else ""
        self._unfinished = ""
        if rest:
            self._erase()
            self._terminal.write(rest)
            self._open_line = True
        self._streamed = False
        if self._open_line:
            self._terminal.write("\n")
            self._open_line = False

    # -- plan and spinner ------------------------------------------------------------------

    def _plan(self, plan: Plan) -> None:
        """Print a plan in full once, then only its changes."""
        self._tools.mark_plan_shown()
        previous = self._plans.get(plan.plan_id)
        self._plans[plan.plan_id] = plan
        before = (
            {step.step_id: (step.name, step.status) for step in previous.steps}
            if previous is not None
            else {}
        )
        steps = [step for step in plan.steps if before.pop(step.step_id, None) != (step.name, step.status)]
        if previous is not None and not steps and not before:
            if plan.status == "approved" != previous.status:
                self._tool_line(self._terminal.paint(say("plan.approved", name=safe(plan.name)), "bold"))
            return
        done, total = plan.progress()
        if previous is None or before or (plan.name, done) != (previous.name, previous.progress()[0]):
            head = say("plan.progress", name=safe(plan.name), done=done, all=total)
            self._tool_line(self._terminal.paint(head, "bold"))
        for step in plan.steps if before else steps:  # after a removal all steps are shown
            self._checklist_line(step.name, step.status)

    def _todo(self, items: tuple[TodoItem, ...]) -> None:
        """Print the complete list if it has new items, else only its changes."""
        self._tools.mark_plan_shown()
        before, self._todo_items = self._todo_items, items
        known_titles = {item.title for item in before}
        has_new_items = any(item.title not in known_titles for item in items)
        done = sum(item.status == "completed" for item in items)
        if has_new_items or any(item not in before for item in items):
            self._tool_line(self._terminal.paint(say("todo.progress", done=done, all=len(items)), "bold"))
        for item in items if has_new_items else (item for item in items if item not in before):
            self._checklist_line(item.title, item.status)

    def _checklist_line(self, title: str, status: str) -> None:
        text = f"  {MARKS[status]} {clip(safe(title), self._terminal.width - 6)}"
        self._tool_line(self._terminal.paint(text, "dim") if status == "completed" else text)

    async def _spin(self) -> None:
        frame = 0
        while True:
            await asyncio.sleep(0.1)
            if self._drawn and self._talking:
                continue
            if self._label and not self._silent and not self._open_line and not self._streamed:
                seconds = int(self._clock() - self._since)
                took = f" {seconds} s" if seconds >= 2 else ""
                took += f" · {say('how_to_stop')}" if seconds >= PATIENCE else ""
                text = clip(f"{FRAMES[frame % len(FRAMES)]} {self._label}{took}", self._terminal.width - 1)
                self._terminal.write(f"\r\x1b[K{self._terminal.paint(text, 'dim')}")
                self._drawn = True
                frame += 1

    def _erase(self) -> None:
        if self._drawn:
            self._terminal.write("\r\x1b[K")
            self._drawn = False


def _is_scripted(model: str) -> bool:
    """Return True if a script plays the model, which uses no tokens."""
    return model.startswith("scripted/")


def usage_text(usage: Usage, seconds: float = 0) -> str:
    """Return tokens, cost, and time as one line; only the time if a script plays the model."""
    if _is_scripted(usage.model):
        return f"{seconds:.1f} s" if seconds else ""
    cached = say("usage.cached", cached=f"{usage.cached_tokens:,}") if usage.cached_tokens else ""
    parts = [
        say("usage", prompt=f"{usage.prompt_tokens:,}{cached}", completion=f"{usage.completion_tokens:,}"),
        f"${usage.cost:.4f}" if usage.cost else "",
        f"{seconds:.1f} s" if seconds else "",
    ]
    return " · ".join(part for part in parts if part)

"""A model with a small window, or with prices: it is played by a function, and its tokens are counted."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from daiku.app import App, build
from daiku.domain.config import ProviderSettings, ToolProtocol
from daiku.domain.errors import ContextOverflowError, Failure
from daiku.domain.messages import (
    AssistantMessage,
    Message,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Reply,
    TextDelta,
    Usage,
)
from daiku.domain.tools import ToolCall
from daiku.models.adapter import LLMAdapter
from daiku.models.catalogue import compute_cost, find_model
from daiku.models.provider import ModelChoice
from daiku.models.table import PROVIDERS
from daiku.models.tokens import estimate, estimate_message, estimate_tools
from daiku.settings.config import Config
from daiku.texts.text import Text
from daiku.workspace.disk import DiskWorkspace

Json = dict[str, Any]
SUMMARY_ORDER = "You condense a work session"


@dataclass
class Played:
    """A provider whose model makes one step after the other, and sums up when it is asked to. A request that is
    larger than its window is refused; what the last request began with too counts as cached."""

    steps: Sequence[Sequence[tuple[str, Json]]]
    window: int
    protocol: ToolProtocol = "native"
    summary: Callable[[str], str] = lambda told: told[:1200]
    end: str = "Done."
    name: str = "compatible"
    at: int = 0
    sizes: list[int] = field(default_factory=list[int])
    refused: int = 0
    summaries: list[int] = field(default_factory=list[int])
    usages: list[Usage] = field(default_factory=list[Usage])
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    _last: tuple[Message, ...] = ()
    _known: dict[int, tuple[Message, int]] = field(default_factory=dict[int, "tuple[Message, int]"])

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        head = estimate(request.system) + estimate_tools(request.tools)
        parts = [self._size(m) for m in request.messages]
        size = head + sum(parts)
        if size > self.window:
            self.refused += 1
            raise ContextOverflowError(Failure(kind="context_overflow", message=Text("too long")))
        if SUMMARY_ORDER in request.system:
            self.summaries.append(size)
            message = AssistantMessage(text=Text(self.summary(request.messages[-1].text)))
            usage = Usage(prompt_tokens=size, completion_tokens=estimate_message(message))
        else:
            same = 0
            for old, new in zip(self._last, request.messages, strict=False):
                if old is not new and old != new:
                    break
                same += 1
            cached = (head if self._last else 0) + sum(parts[:same])
            self._last = request.messages
            self.sizes.append(size)
            self.requests.append(request)
            message = self._step()
            usage = Usage(
                prompt_tokens=size, completion_tokens=estimate_message(message), cached_tokens=cached
            )
        self.usages.append(usage)
        if message.text:
            yield TextDelta(message.text)
        yield Reply(message, usage, "tool_calls" if message.calls else "stop")

    def _size(self, message: Message) -> int:
        known = self._known.get(id(message))
        if known is None or known[0] is not message:
            known = self._known[id(message)] = (message, estimate_message(message))
        return known[1]

    def _step(self) -> AssistantMessage:
        if self.at >= len(self.steps):
            return AssistantMessage(text=Text(self.end))
        calls = self.steps[self.at]
        self.at += 1
        said = "I look at the next place, change it, and see what the tests say of it."
        if self.protocol == "native":
            made = tuple(ToolCall(id=f"c{self.at}-{n}", tool=t, args=a) for n, (t, a) in enumerate(calls))
            return AssistantMessage(text=Text(said), calls=made)
        if self.protocol == "command":
            tool, args = calls[0]
            text = json.dumps({"comment": said, "command": {"tool": tool, "args": args}})
        else:
            actions = [{"operation": tool, "args": args} for tool, args in calls]
            text = json.dumps({"comment": said, "actions": actions})
        return AssistantMessage(text=Text(text))

    async def models(self) -> tuple[ModelInfo, ...]:
        return ()

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    async def aclose(self) -> None:
        """Hold nothing."""


def app_over(folder: Path, played: Played, *, model: str = "some-model", window: int = 0) -> App:
    """An App over `folder`/project whose model is `played`; `window` is what the settings say of it."""
    (folder / "project").mkdir(exist_ok=True)
    config = Config.model_validate(
        {
            "llm": {"model": "scripted/none"},
            "sandbox": {"mode": "off"},
            "limits": {"max_rounds": 0, "max_repeats": 0},
        }
    )
    app = build(config, workspace=DiskWorkspace((folder / "project",)), home=folder / "home")
    adapter = LLMAdapter(
        choice=ModelChoice("compatible", model),
        provider=played,
        entry=PROVIDERS["compatible"],
        settings=ProviderSettings(context_length=window, tool_protocol=played.protocol),
    )
    app.runs.services = replace(app.runs.services, model=lambda _: adapter)
    return app


def price_of(usages: Sequence[Usage], model: str) -> float:
    """USD for all of `usages` by the catalogue."""
    entry = find_model(model)
    anthropic = entry is not None and entry.provider == "anthropic"
    found = 0.0
    for each in usages:
        written = each.prompt_tokens - each.cached_tokens if anthropic else 0
        found += compute_cost(each, model, {}, cache_writes=written) or 0.0
    return found

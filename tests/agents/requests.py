"""The first request of every agent, mode and family of models: made by real runs, written so that a person reads it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from daiku.app import build
from daiku.domain.config import ToolProtocol
from daiku.domain.errors import Failure, LLMRequestError
from daiku.domain.messages import ModelEvent, ModelRequest, UserMessage
from daiku.domain.runs import ApprovalMode, Mode
from daiku.domain.tools import ToolSpec
from daiku.guard.rules.policy import Policy
from daiku.models.families import ModelTraits, find_traits
from daiku.models.tokens import estimate
from daiku.run.request import RunRequest
from daiku.run.rules.budget import Quote
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.runs import Runs
from daiku.settings.config import Config
from daiku.texts.text import Text
from daiku.workspace.disk import DiskWorkspace

MODELS = {
    "other": "carpenter-1",
    "gpt": "gpt-6.1-sol",
    "claude": "claude-sonnet-5-5",
    "gemini": "gemini-3.8-flash",
    "glm": "glm-5",
    "qwen": "qwen3-coder:30b",
    "kimi": "kimi-k2",
    "deepseek": "deepseek-chat",
    "llama": "llama-4",
    "mistral": "devstral-2",
    "forms": "carpenter-1-in-text",
    "small": "carpenter-1-small",
}
"""A model of each family; one that is told of tools in its text, so that roles answer it in their text forms; and one
with a window of 8,000 tokens, which is sent five tools."""
RULES = "Use tabs.\n{{ not a template }}\n"
REQUEST = "The total is wrong for three apples."


@dataclass
class Listening:
    """A model that keeps what it is asked and says nothing; how it is spoken to follows from its name."""

    name: str
    asked: list[ModelRequest] = field(default_factory=list[ModelRequest])
    price_step: int = 0

    @property
    def context(self) -> int:
        return 8_000 if self.name == MODELS["small"] else 200_000

    @property
    def tool_protocol(self) -> ToolProtocol:
        return "action_list" if self.name == MODELS["forms"] else "native"

    @property
    def traits(self) -> ModelTraits:
        return find_traits(self.name)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        raise LLMRequestError(Failure(kind="auth", message=Text("It only listens.")))
        yield  # an async generator

    def quote(self, _: ModelRequest) -> Quote:
        return Quote(0, 0)


@dataclass
class Asking:
    """Runs over one small project whose models only listen. Use it as a context for `first_request`."""

    folder: Path

    def __post_init__(self) -> None:
        project = self.folder / "shop"
        project.mkdir()
        (project / "AGENTS.md").write_text(RULES)
        (project / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\n')
        app = build(Config(), workspace=DiskWorkspace((project,)), home=self.folder / "home")
        self.app = app
        self._model = Listening("")
        services = replace(app.runs.services, model=lambda _: self._model, policy=self._policy)
        self._runs = Runs(services)

    async def first_request(self, agent: str, mode: Mode, model: str) -> ModelRequest:
        """What `model` is asked first when a person asks `agent` in a new session, as it is on one day and machine."""
        self._model = Listening(model)
        await self._runs.run(RunRequest(REQUEST, agent=agent, mode=mode), lambda _: None)
        asked = self._model.asked[0]
        messages = tuple(m.model_copy(update={"text": self._settled(m.text)}) for m in asked.messages)
        return replace(asked, system=self._settled(asked.system), messages=messages)

    def _settled(self, text: str) -> str:
        text = text.replace(str(self.folder), "/home/me")
        text = re.sub(r"^Date: .*$", "Date: Sunday, 2026-11-22", text, flags=re.MULTILINE)
        return re.sub(r"^System: .*$", "System: Linux x86_64", text, flags=re.MULTILINE)

    def _policy(self, mode: Mode, approvals: ApprovalMode, attended: bool) -> Policy:
        return Policy(mode=mode, approval_mode=approvals, headless=not attended)


def shown(request: ModelRequest) -> str:
    """System, tools and messages as a person reads them, each part with its estimated tokens."""
    parts = [("system", request.system), ("tools", shown_tools(request.tools))]
    return "\n".join(_part(name, text) for name, text in parts) + shown_messages(request)


def shown_messages(request: ModelRequest) -> str:
    """What the model reads after its system text."""
    messages = [m for m in request.messages if isinstance(m, UserMessage)]
    assert len(messages) == len(request.messages), "the first request holds no reply"
    return "\n".join(_part("user", message.text) for message in messages)


def shown_tools(tools: tuple[ToolSpec, ...]) -> str:
    """The tools with their parameters, in the order in which they are offered."""
    return "\n\n".join(
        "\n".join([wire_name(t.name), f"  {t.description}", *_fields(t.parameters)]) for t in tools
    )


def named_tools(text: str) -> set[str]:
    """Every tool that a text names in the form in which it is called."""
    return set(re.findall(r"(?<![\w/])[a-z]+__[a-z_]+(?!\w)", text))


def undescribed(spec: ToolSpec) -> list[str]:
    """The parameters of a tool of which nothing is said, inner ones by their path."""
    return [path for path, schema in _parameters(spec.parameters) if not schema.get("description")]


def _part(name: str, text: str) -> str:
    return f"=== {name} ({estimate(text)} tokens)\n{text}\n"


def _fields(schema: dict[str, Any], indent: str = "  ") -> Iterator[str]:
    required = schema.get("required", [])
    for name, inner in schema.get("properties", {}).items():
        about = f" — {inner['description']}" if inner.get("description") else ""
        need = ", required" if name in required else ""
        default = f", default {json.dumps(inner['default'])}" if "default" in inner else ""
        yield f"{indent}- {name}: {_kind(inner)}{need}{default}{about}"
        for deeper in (inner, inner.get("items", {})):
            yield from _fields(_resolved(deeper, schema), indent + "  ")


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS if key in schema]
    return " ".join([str(schema.get("type", schema.get("$ref", "any"))), *bounds])


_BOUNDS = (
    ("minimum", "from"),
    ("exclusiveMinimum", "above"),
    ("maximum", "to"),
    ("minLength", "longer than"),
)


def _resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return whole.get("$defs", {}).get(name, schema)


def _parameters(schema: dict[str, Any], above: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{above}{name}", inner
        for deeper in (inner, inner.get("items", {})):
            yield from _parameters(_resolved(deeper, schema), f"{above}{name}.")

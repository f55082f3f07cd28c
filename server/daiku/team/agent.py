"""The Agent: a name, instructions, tools, the type of its answers, and whom it may hand work to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from daiku.dataclass import dataclass, field, fields
from daiku.domain.labels import Label
from daiku.domain.runs import Mode
from daiku.domain.tools import EditForm, Effect, ToolSpec
from daiku.models.families import Model
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.calls.toolsets import CALL, FIND, ToolSet, choose_tools
from daiku.run.rules.outside import Guard, Remembers
from daiku.team.given import (
    ToolLike,
    checked_extras,
    checked_guardrails,
    checked_hook,
    checked_memory,
    checked_model,
    checked_name,
)
from daiku.team.part import Machine, Part, Stage
from daiku.team.running import Result, RunnerOptions, own_runner
from daiku.team.typed_output import TypedOutput, typed_output
from daiku.tools.functions import as_tools
from daiku.tools.tool import Tool

if TYPE_CHECKING:
    from daiku.team.role import Role
    from daiku.team.stream import RunStream

CARRIED_OUT: Mapping[Mode, frozenset[Effect]] = MappingProxyType(
    {
        "ask": frozenset({"none", "read", "network", "ask", "memory"}),
        "plan": frozenset({"none", "read", "network", "plan", "ask", "memory"}),
        "act": frozenset({"none", "read", "edit", "command", "network", "mcp", "plan", "ask", "memory"}),
    }
)
"""Which effects a mode lets be carried out. What a model is offered is the same in every mode."""
_WHAT_IT_DOES: Mapping[Effect, str] = MappingProxyType(
    {
        "edit": "changes files",
        "command": "runs commands or changes the repository",
        "mcp": "may change things outside, through an MCP server",
        "plan": "changes the plan",
    }
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Instructions that stand in a packaged template, by its id such as `team/coder`."""

    id: str


class AgentOptions(TypedDict, total=False):
    """What `Agent.with_` can change."""

    tools: Iterable[ToolLike]
    model: str | Model
    output: Any
    handoffs: Sequence[Agent]
    guardrails: Sequence[Guard]
    memory: Remembers | None
    extra_cfg: Mapping[str, Any] | None
    on_handoff_return: Callable[[str], str] | None
    part: Part | None


LONGEST_DESCRIPTION = 200
"""Characters of the instructions that other agents are told where nothing else says what an agent does."""
HANDOFF = "agent/handoff"


@dataclass(frozen=True, slots=True, init=False, eq=False, weakref_slot=True)
class Agent:
    """Who works: a name, instructions, tools (R1.10, R1.18–R1.21). Planner, coder and the others are values of it.

    `name` and `instructions` never change; `with_` makes a copy in which the rest may differ, as the model and the
    memory of one run (R1.22). `tools` are functions, `Tool`s and names or patterns of built-in tools (`"files/*"`);
    without any it has none. `model` is a name, "" for its Runner's, or what answers in its place. Of `output`, a
    pydantic model or any type that pydantic can check, its answers are; others are sent back. `handoffs` are the
    agents that it may give requests to; what it answers to a request that it was handed itself goes through
    `on_handoff_return` (R1.33).
    `guardrails` look at what it is told, calls and answers, `memory` brings what fits a request: both stand before
    and behind the model (R1.24, R1.28). Its tools get `extra_cfg` as it is (R1.20). `part` is for Daiku's own agents.

    Raises TypeError or ValueError that names the argument.
    """

    name: str
    instructions: str | Prompt
    tools: tuple[Tool | str, ...]
    model: str | Model
    output: Any
    handoffs: tuple[Agent, ...]
    guardrails: tuple[Guard, ...]
    memory: Remembers | None
    extra_cfg: Mapping[str, Any]
    on_handoff_return: Callable[[str], str]
    part: Part | None
    answers: TypedOutput | None = field(init=False)
    """How its typed answers are asked for and read; None where it answers in words."""
    role: Role | None = field(init=False)
    """The form it answers in."""

    def __init__(
        self,
        name: str,
        instructions: str | Prompt,
        *,
        tools: Iterable[ToolLike] = (),
        model: str | Model = "",
        output: Any = None,
        handoffs: Sequence[Agent] = (),
        guardrails: Sequence[Guard] = (),
        memory: Remembers | None = None,
        extra_cfg: Mapping[str, Any] | None = None,
        on_handoff_return: Callable[[str], str] | None = None,
        part: Part | None = None,
    ) -> None:
        answers = typed_output(output)
        values: dict[str, object] = {
            "name": checked_name(name),
            "instructions": _checked_instructions(instructions),
            "tools": as_tools(tools),
            "model": checked_model(model),
            "output": output,
            "handoffs": _checked_handoffs(handoffs),
            "guardrails": checked_guardrails(guardrails),
            "memory": checked_memory(memory),
            "extra_cfg": checked_extras(extra_cfg),
            "on_handoff_return": checked_hook(on_handoff_return),
            "part": part,
            "answers": answers,
            "role": part.role if part is not None else answers.role() if answers is not None else None,
        }
        for part_of, value in values.items():
            object.__setattr__(self, part_of, value)

    def with_(self, **changes: Unpack[AgentOptions]) -> Agent:
        """A changed copy, as `agent.with_(model="openai/gpt-5.2")` (R1.22). Raises as `Agent`."""
        fixed = next((name for name in ("name", "instructions") if name in changes), None)
        if fixed is not None:
            raise TypeError(f"Agent.with_: `{fixed}` of an agent never changes; make another Agent.")
        kept: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)[2:] if each.init}
        return Agent(self.name, self.instructions, **(kept | cast("dict[str, Any]", changes)))

    async def run(self, text: str, **options: Unpack[RunnerOptions]) -> Result:
        """Work on `text` to its end, by a Runner of its own that is made with `options`."""
        runner = own_runner(options)
        try:
            return await runner.run(self, text)
        finally:
            await runner.aclose()

    def run_sync(self, text: str, **options: Unpack[RunnerOptions]) -> Result:
        """`run` for code that is not asynchronous; also inside a running event loop, which waits for it."""
        runner = own_runner(options)
        try:
            return runner.run_sync(self, text)
        finally:
            runner.close()

    def stream(self, text: str, **options: Unpack[RunnerOptions]) -> RunStream:
        """`run` whose chunks are read as they come: `async for chunk in agent.stream("…")` (R1.3)."""
        return own_runner(options).stream(self, text, closes=True)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The names and patterns of all its tools."""
        own = tuple(each if isinstance(each, str) else each.name for each in self.tools)
        return (*own, HANDOFF) if self.handoffs else own

    @property
    def own_tools(self) -> tuple[Tool, ...]:
        """The tools that it brings itself."""
        return tuple(each for each in self.tools if isinstance(each, Tool))

    @property
    def uses_builtin_tools(self) -> bool:
        """Whether it names tools of Daiku: then it is told of the folder that they work in."""
        return any(isinstance(each, str) for each in self.tools)

    @property
    def label(self) -> Label:
        """What people are shown."""
        return self.part.label if self.part is not None else Label(en=self.name, ja=self.name)

    @property
    def description(self) -> str:
        """What other agents are told that it does."""
        if self.part is not None or isinstance(self.instructions, Prompt):
            return self.part.description if self.part is not None else ""
        line = self.instructions.strip().split("\n", 1)[0]
        return line if len(line) <= LONGEST_DESCRIPTION else f"{line[:LONGEST_DESCRIPTION]}…"

    @property
    def delegate(self) -> bool:
        """Whether any agent may hand requests to it."""
        return self.part is not None and self.part.delegate

    @property
    def stage(self) -> Stage | None:
        return self.part.stage if self.part is not None else None

    @property
    def machine(self) -> Machine | None:
        return self.part.machine if self.part is not None else None

    @property
    def defers(self) -> bool:
        return self.part is not None and self.part.defers

    @property
    def may_cd(self) -> bool:
        return self.part is None or self.part.may_cd

    @property
    def knows_project(self) -> bool:
        return self.part is not None and self.part.knows_project

    @property
    def reads_brief(self) -> bool:
        """Return whether the agent's prompt is built from a Brief instead of the bare request."""
        return self.stage is not None and self.stage.request is not None

    def usable(self, specs: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        """The tools of this agent whatever the mode, in the registry's order (stable for caches)."""
        return _usable(self.patterns, _Same(specs))

    def allowed(self, specs: tuple[ToolSpec, ...], mode: Mode) -> tuple[ToolSpec, ...]:
        """Those of its tools that may be carried out in this mode."""
        return tuple(spec for spec in self.usable(specs) if spec.effect in CARRIED_OUT[mode])

    def sent(
        self, specs: tuple[ToolSpec, ...], window: int, edits: EditForm, large: Callable[[], bool]
    ) -> ToolSet:
        """Divide its tools into those sent to the model and those to be found. `large`: of the project."""
        patterns, known = self.patterns, _Same(specs)
        if not self.defers:
            return _all_sent(patterns, known)
        return _chosen(patterns, known, window, edits, large())

    def why_refused(self, spec: ToolSpec, mode: Mode) -> str:
        """Why a call of a tool that there is was not carried out, and what to do instead."""
        name = wire_name(spec.name)
        if not self.usable((spec,)):
            return f"{name} was not run: it is none of your tools. Do the part that is yours with those."
        does = _WHAT_IT_DOES.get(spec.effect, "is not for this mode")
        if mode == "plan":
            return (
                f"{name} was not run: it {does}, and in plan mode nothing is changed. Look and read; when you know "
                f"what is to be done, propose it with {wire_name('plan/propose')} and end your turn."
            )
        return (
            f"{name} was not run: it {does}, and in {mode} mode nothing is changed. Answer in words; say what "
            "would have to be done, and that the person can switch to act mode for it."
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """The tools of a registry, known again as the same tuple: hundreds of runs may begin with them at once."""

    specs: tuple[ToolSpec, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.specs is self.specs

    def __hash__(self) -> int:
        return id(self.specs)


@lru_cache(maxsize=64)
def _usable(patterns: tuple[str, ...], known: _Same) -> tuple[ToolSpec, ...]:
    return tuple(spec for spec in known.specs if any(_names(pattern, spec) for pattern in patterns))


@lru_cache(maxsize=64)
def _all_sent(patterns: tuple[str, ...], known: _Same) -> ToolSet:
    return ToolSet(tuple(spec for spec in _usable(patterns, known) if spec.name not in (FIND, CALL)))


@lru_cache(maxsize=64)
def _chosen(patterns: tuple[str, ...], known: _Same, window: int, edits: EditForm, large: bool) -> ToolSet:
    return choose_tools(_usable(patterns, known), window=window, edits=edits, large=large)


def _names(pattern: str, spec: ToolSpec) -> bool:
    """Whether a pattern of tools means this one; those of single agents are not meant by `*`."""
    return fnmatchcase(spec.name, pattern) and not (spec.inner and pattern == "*")


LOOKING = ("files/read", "files/list", "search/*", "editor/*")
"""The tools that look at the project's files and change nothing."""
HISTORY = ("git/status", "git/diff", "git/log")
"""The tools that look at the repository; whoever has a shell asks it."""


def _checked_instructions(instructions: object) -> str | Prompt:
    if isinstance(instructions, Prompt):
        return instructions
    if not isinstance(instructions, str):
        kind = type(instructions).__name__
        raise TypeError(f"Agent: `instructions` is a text or a Prompt, not a {kind}.")
    if not instructions.strip():
        raise ValueError("Agent: `instructions` is empty; say in a sentence what the agent does.")
    return instructions


def _checked_handoffs(handoffs: object) -> tuple[Agent, ...]:
    if isinstance(handoffs, str) or not isinstance(handoffs, Sequence):
        raise TypeError(f"Agent: `handoffs` is a list of Agents, not a {type(handoffs).__name__}.")
    found: list[Agent] = []
    for each in cast("Sequence[object]", handoffs):
        if not isinstance(each, Agent):
            raise TypeError(f"Agent: `handoffs` takes Agents, not a {type(each).__name__} ({each!r:.80}).")
        if any(each.name == other.name for other in found):
            raise ValueError(f"Agent: `handoffs` holds two agents called {each.name!r}.")
        found.append(each)
    return tuple(found)

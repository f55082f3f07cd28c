"""The Agent: name, instructions, tools, output type, and handoffs."""

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
from daiku.run.rules.calls.findtools import CALL, FIND, ToolSet, choose_tools
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.outside import Guard, Remembers
from daiku.team.given import (
    ToolLike,
    check_extra_cfg,
    check_guardrails,
    check_handoff_hook,
    check_memory,
    check_model,
    check_name,
)
from daiku.team.part import Machine, Part, Stage
from daiku.team.running import Result, RunnerOptions, build_runner
from daiku.team.typed_output import TypedOutput, build_typed_output
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
"""Effects that each mode allows. The model is offered the same tools in every mode."""
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
    """Instructions in a packaged template, by its id such as `agents/coder`."""

    id: str


class AgentOptions(TypedDict, total=False):
    """Keyword arguments of `Agent.with_`."""

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
"""Maximum characters of the instructions shown to other agents as the agent's description."""
HANDOFF = "agent/handoff"


@dataclass(frozen=True, slots=True, init=False, eq=False, weakref_slot=True)
class Agent:
    """An agent: a name, instructions, tools (R1.10, R1.18–R1.21). Planner, coder, and the others are instances of it.

    `name` and `instructions` are fixed; `with_` makes a copy with other options, such as the model and the memory of one
    run (R1.22).

    Args:
        tools: functions, `Tool`s, and names or patterns of built-in tools (`"files/*"`); none by default.
        model: a name, "" for the Runner's model, or a model object.
        output: a pydantic model or any type that pydantic can validate; invalid answers are sent back for a retry.
        handoffs: the agents that it may hand requests to.
        guardrails: checks of its input, tool calls, and answers (R1.24).
        memory: recalls what fits a request, and is updated after the answer (R1.28).
        extra_cfg: passed to its tools unchanged (R1.20).
        on_handoff_return: applied to its answer to a request that was handed to it (R1.33).
        part: only for Daiku's own agents.

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
    """How typed answers are requested and parsed; None if answers are text."""
    role: Role | None = field(init=False)
    """The fixed format of its replies; None for free text."""

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
        answers = build_typed_output(output)
        values: dict[str, object] = {
            "name": check_name(name),
            "instructions": _check_instructions(instructions),
            "tools": as_tools(tools),
            "model": check_model(model),
            "output": output,
            "handoffs": _check_handoffs(handoffs),
            "guardrails": check_guardrails(guardrails),
            "memory": check_memory(memory),
            "extra_cfg": check_extra_cfg(extra_cfg),
            "on_handoff_return": check_handoff_hook(on_handoff_return),
            "part": part,
            "answers": answers,
            "role": part.role if part is not None else answers.build_role() if answers is not None else None,
        }
        for part_of, value in values.items():
            object.__setattr__(self, part_of, value)

    def with_(self, **changes: Unpack[AgentOptions]) -> Agent:
        """Return a changed copy, as `agent.with_(model="openai/gpt-5.2")` (R1.22). Raises as `Agent`."""
        fixed = next((name for name in ("name", "instructions") if name in changes), None)
        if fixed is not None:
            raise TypeError(f"Agent.with_: `{fixed}` of an agent never changes; make another Agent.")
        current: dict[str, Any] = {
            option.name: getattr(self, option.name) for option in fields(self)[2:] if option.init
        }
        return Agent(self.name, self.instructions, **(current | cast("dict[str, Any]", changes)))

    async def run(self, text: str, **options: Unpack[RunnerOptions]) -> Result:
        """Run the agent on `text` with a Runner made from `options`, and return the result."""
        runner = build_runner(options)
        try:
            return await runner.run(self, text)
        finally:
            await runner.aclose()

    def run_sync(self, text: str, **options: Unpack[RunnerOptions]) -> Result:
        """Run like `run`, for synchronous code; also works inside a running event loop, which it blocks."""
        runner = build_runner(options)
        try:
            return runner.run_sync(self, text)
        finally:
            runner.close()

    def stream(self, text: str, **options: Unpack[RunnerOptions]) -> RunStream:
        """Start `run` and stream its chunks: `async for chunk in agent.stream("…")` (R1.3)."""
        return build_runner(options).stream(self, text, closes=True)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Names and patterns of all its tools."""
        patterns = tuple(tool if isinstance(tool, str) else tool.name for tool in self.tools)
        return (*patterns, HANDOFF) if self.handoffs else patterns

    @property
    def own_tools(self) -> tuple[Tool, ...]:
        """The Tool objects that it brings along."""
        return tuple(tool for tool in self.tools if isinstance(tool, Tool))

    @property
    def uses_builtin_tools(self) -> bool:
        """True if it names built-in tools; its prompt then includes the workspace's rules."""
        return any(isinstance(tool, str) for tool in self.tools)

    @property
    def label(self) -> Label:
        """Display name."""
        return self.part.label if self.part is not None else Label(en=self.name, ja=self.name)

    @property
    def description(self) -> str:
        """Description for other agents."""
        if self.part is not None or isinstance(self.instructions, Prompt):
            return self.part.description if self.part is not None else ""
        line = self.instructions.strip().split("\n", 1)[0]
        return line if len(line) <= LONGEST_DESCRIPTION else f"{line[:LONGEST_DESCRIPTION]}…"

    @property
    def delegate(self) -> bool:
        """True if any agent may hand requests to it."""
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
        """True if its prompt is built from a Brief instead of the bare request."""
        return self.stage is not None and self.stage.request is not None

    def usable(self, specs: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        """Return the agent's tools in any mode, in the registry's order (stable for prompt caches)."""
        return _select_usable(self.patterns, _SpecsById(specs))

    def allowed(self, specs: tuple[ToolSpec, ...], mode: Mode) -> tuple[ToolSpec, ...]:
        """Return the agent's tools that may run in `mode`."""
        return tuple(spec for spec in self.usable(specs) if spec.effect in CARRIED_OUT[mode])

    def sent(
        self, specs: tuple[ToolSpec, ...], window: int, edits: EditForm, large: Callable[[], bool]
    ) -> ToolSet:
        """Split its tools into those sent to the model and those found by search. `large`: is the project large?"""
        patterns, same_specs = self.patterns, _SpecsById(specs)
        if not self.defers:
            return _send_all(patterns, same_specs)
        return _choose(patterns, same_specs, window, edits, large())

    def why_refused(self, spec: ToolSpec, mode: Mode) -> str:
        """Return the message for a call that was denied: why, and what to do instead."""
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
class _SpecsById:
    """A registry's tools, compared by identity, as a cache key: hundreds of runs may start at once."""

    specs: tuple[ToolSpec, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SpecsById) and other.specs is self.specs

    def __hash__(self) -> int:
        return id(self.specs)


@lru_cache(maxsize=64)
def _select_usable(patterns: tuple[str, ...], same_specs: _SpecsById) -> tuple[ToolSpec, ...]:
    return tuple(spec for spec in same_specs.specs if any(_is_match(pattern, spec) for pattern in patterns))


@lru_cache(maxsize=64)
def _send_all(patterns: tuple[str, ...], same_specs: _SpecsById) -> ToolSet:
    return ToolSet(
        tuple(spec for spec in _select_usable(patterns, same_specs) if spec.name not in (FIND, CALL))
    )


@lru_cache(maxsize=64)
def _choose(
    patterns: tuple[str, ...], same_specs: _SpecsById, window: int, edits: EditForm, large: bool
) -> ToolSet:
    return choose_tools(_select_usable(patterns, same_specs), window=window, edits=edits, large=large)


def _is_match(pattern: str, spec: ToolSpec) -> bool:
    """Return True if a tool pattern matches `spec`; `*` does not match tools of single agents."""
    return fnmatchcase(spec.name, pattern) and not (spec.inner and pattern == "*")


LOOKING = ("files/read", "files/list", "search/*", "editor/*")
"""Tools that read the project's files and change nothing."""
HISTORY = ("git/status", "git/diff", "git/log")
"""Tools that read the repository's state; agents with a shell use git there."""


def _check_instructions(instructions: object) -> str | Prompt:
    if isinstance(instructions, Prompt):
        return instructions
    if not isinstance(instructions, str):
        kind = type(instructions).__name__
        raise TypeError(f"Agent: `instructions` is a text or a Prompt, not a {kind}.")
    if not instructions.strip():
        raise ValueError("Agent: `instructions` is empty; say in a sentence what the agent does.")
    return instructions


def _check_handoffs(handoffs: object) -> tuple[Agent, ...]:
    if isinstance(handoffs, str) or not isinstance(handoffs, Sequence):
        raise TypeError(f"Agent: `handoffs` is a list of Agents, not a {type(handoffs).__name__}.")
    agents: list[Agent] = []
    for agent in cast("Sequence[object]", handoffs):
        if not isinstance(agent, Agent):
            raise TypeError(f"Agent: `handoffs` takes Agents, not a {type(agent).__name__} ({agent!r:.80}).")
        if any(agent.name == other.name for other in agents):
            raise ValueError(f"Agent: `handoffs` holds two agents called {agent.name!r}.")
        agents.append(agent)
    return tuple(agents)

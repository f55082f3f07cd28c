"""Validate the arguments of a Runner, and build its App."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from daiku.app import App, AppParts, build
from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.errors import DaikuError, UsageError
from daiku.domain.messages import Image
from daiku.domain.runs import ContextItem, RunLimits
from daiku.guard.rules.redact import Redactor
from daiku.models.families import Model
from daiku.models.rules.replies.parse import describe_error
from daiku.run.rules.outside import Guard, Remembers, Router
from daiku.settings import from_mapping, secrets_of
from daiku.settings.config import Config, StorageSettings
from daiku.store.opening import SERVER
from daiku.team.agent import Agent
from daiku.team.given import check_guardrails, check_memory, check_model
from daiku.texts.rules.patterns import lazy
from daiku.trace.stores import Stores, open_stores
from daiku.workspace.disk import DiskWorkspace

if TYPE_CHECKING:
    from daiku.trace.telemetry.logger import TraceLogger


def format_error(error: DaikuError) -> str:
    """Return the error's message and hint as text."""
    return " ".join(part for part in (error.failure.message, error.failure.hint) if part)


_URL = lazy(r"([a-z][a-z0-9+.-]+)://(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True)
class RunnerParts:
    """The validated arguments of a Runner.

    `model` is for agents without one; `scratch` is the folder for tool output.
    """

    model: str | Model
    workspace: Path | None
    store: Path | str | None
    guardrails: tuple[Guard, ...]
    memory: Remembers | None
    limits: RunLimits | None
    settings: JsonObject
    trace: TraceLogger | None = None
    router: Router | None = None
    keeps_trace: bool = False
    """True if the trace was opened here and must be closed here."""
    scratch: Path = field(init=False)
    _secrets: frozenset[str] = field(default=frozenset(), init=False)
    _clean: Callable[[str], str] = field(default=str, init=False)
    _stores: Stores | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        output_folder = Path(f"{self.store}-files") if isinstance(self.store, Path) else None
        self.scratch = output_folder or Path(tempfile.gettempdir()) / f"daiku-{os.getpid()}-{id(self):x}"

    def build(self, *, with_keys: bool, builtin: bool) -> App:
        """Build an App; stores are shared.

        `with_keys`: read providers' keys and URLs from the environment. `builtin`: include Daiku's own
        tools. Raises ValueError if the settings or the store cannot be used.
        """
        config = self.config(os.environ if with_keys else {})
        stores = self._open_stores(config)
        model = None if isinstance(self.model, str) else self.model
        app = build(
            config,
            workspace=DiskWorkspace((self.workspace,) if self.workspace is not None else ()),
            home=self.scratch,
            own=False,
            parts=AppParts(
                model=model,
                guardrails=self.guardrails,
                router=self.router,
                memory=self.memory,
                stores=stores,
                trace=self.trace,
                environ=os.environ if self.workspace is not None else {},
                plugins=False,
                builtin=builtin,
                folder=Path.cwd(),
            ),
        )
        app.servers.required = True
        for question in app.servers.list_questions():  # the program's own settings count as consent
            app.servers.record_answer(question, "allow_once")
        return app

    def config(self, environ: Mapping[str, str]) -> Config:
        """Return the settings, with providers from `environ`. Raises ValueError."""
        try:
            config = from_mapping(self.settings, environ)
        except UsageError as error:
            raise ValueError(f"Runner: `settings`: {format_error(error)}") from None
        if isinstance(self.store, str):  # so that its password is redacted
            config = config.model_copy(update={"storage": StorageSettings(database_url=self.store)})
        if isinstance(self.model, str) and self.model:
            llm = config.llm.model_copy(update={"provider": "", "model": self.model})
            config = config.model_copy(update={"llm": llm})
        return config if self.limits is None else config.model_copy(update={"limits": self.limits})

    def _open_stores(self, config: Config) -> Stores:
        self._secrets |= frozenset(secrets_of(config, os.environ if self.workspace is not None else {}))
        self._clean = Redactor(tuple(self._secrets))
        if self._stores is None:
            try:
                self._stores = open_stores(self.store, self._redact)
            except UsageError as error:
                raise ValueError(f"Runner: `store`: {format_error(error)}") from None
        return self._stores

    def _redact(self, value: str) -> str:
        return self._clean(value)  # looked up at each call: an App with providers' keys adds secrets

    def close(self) -> None:
        """Close the stores, and delete tool output unless there is a store."""
        if self._stores is not None:
            self._stores.close()
        if self.trace is not None and self.keeps_trace:
            self.trace.close()
        if not isinstance(self.store, Path) and self.scratch.exists():
            shutil.rmtree(self.scratch, ignore_errors=True)


def check_parts(
    model: object,
    workspace: object,
    store: object,
    guardrails: object,
    memory: object,
    limits: object,
    settings: object,
    trace: object = None,
    router: object = None,
) -> RunnerParts:
    """Validate the arguments of a Runner. Raises TypeError or ValueError that names the argument."""
    return RunnerParts(
        check_model(model),
        _folder(workspace),
        _store(store),
        check_guardrails(guardrails),
        check_memory(memory),
        _limits(limits),
        _mapping("settings", settings),
        _trace(trace),
        _router(router),
        keeps_trace=isinstance(trace, str | os.PathLike),
    )


def _folder(workspace: object) -> Path | None:
    if workspace is None:
        return None
    if not isinstance(workspace, str | os.PathLike):
        raise TypeError(f"Runner: `workspace` is the path of a folder, not {type(workspace).__name__}.")
    folder = Path(cast("str | os.PathLike[str]", workspace)).expanduser()
    if not folder.is_dir():
        raise ValueError(f"Runner: `workspace` is no folder: {folder}.")
    return folder.resolve()


def _store(store: object) -> Path | str | None:
    """Return the file of a store, or the URL of its server; None keeps it in memory."""
    if store is None:
        return None
    if not isinstance(store, str | os.PathLike):
        raise TypeError(f"Runner: `store` is a path, a database URL or None, not {type(store).__name__}.")
    location = os.fspath(cast("str | os.PathLike[str]", store))
    url = _URL.fullmatch(location)
    if url is not None and url[1].lower() in SERVER:
        return f"{url[1].lower()}://{url[2]}"
    if url is not None and url[1].lower() != "sqlite":
        raise ValueError(
            f"Runner: `store` cannot be a {url[1]} database; give a path, sqlite:///path, postgresql://…, or None for memory."
        )
    path = url[2].removeprefix("/") if url is not None else location
    if not path or path == ":memory:":
        return None
    if Path(path).is_dir():
        raise ValueError(f"Runner: `store` is a folder, not a file: {path}.")
    return Path(path).expanduser().absolute()


def _trace(trace: object) -> TraceLogger | None:
    """Return the trace logger, or a new one for a path."""
    if trace is None:
        return None
    from daiku.trace.telemetry.logger import TraceLogger  # when used

    if isinstance(trace, TraceLogger):
        return trace
    if not isinstance(trace, str | os.PathLike):
        raise TypeError(f"Runner: `trace` is a TraceLogger or a path, not {type(trace).__name__}.")
    return TraceLogger(os.fspath(cast("str | os.PathLike[str]", trace)))


def _router(router: object) -> Router | None:
    if router is not None and not hasattr(router, "route"):
        raise TypeError(f"Runner: `router` is a RuleRouter or an LLMRouter, not {type(router).__name__}.")
    return cast("Router | None", router)


def _limits(limits: object) -> RunLimits | None:
    if limits is None or isinstance(limits, RunLimits):
        return limits
    try:
        return RunLimits.model_validate(_mapping("limits", limits))
    except ValidationError as error:
        raise ValueError(f"Runner: `limits`: {describe_error(error)}.") from None


def _mapping(name: str, value: object) -> JsonObject:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"Runner: `{name}` is a mapping, not {type(value).__name__}.")
    return dict(cast("Mapping[str, Any]", value))


def check_names(app: App, agent: Agent, router: Router | None) -> None:
    """Raise ValueError for an unknown tool, pattern, or agent, and suggest the nearest name."""
    servers = [report.name for report in app.servers.list_reports()]
    for member in _reachable_agents(agent):
        own_tools = [tool.name for tool in member.own_tools]
        names = [*app.registry.names, *own_tools, *(f"{name}/*" for name in servers)]
        namespaces = dict.fromkeys(f"{name.split('/', 1)[0]}/*" for name in names if "/" in name)
        for pattern in (tool for tool in member.tools if isinstance(tool, str)):
            matches = any(fnmatchcase(name, pattern) for name in names)
            if not matches and not any(pattern.startswith(f"{name}/") for name in servers):
                suggestion = _suggestion(pattern, (*names, *namespaces))
                raise ValueError(
                    f"Agent {member.name!r}: `tools` names no tool that there is: {pattern!r}.{suggestion}"
                )
    if (rules := getattr(router, "rules", None)) and isinstance(rules, list):
        _check_routes(app, agent, cast("list[tuple[str, list[str]]]", rules), getattr(router, "given", {}))


def _check_routes(
    app: App, agent: Agent, rules: list[tuple[str, list[str]]], router_agents: Mapping[str, Agent]
) -> None:
    """Raise ValueError for an unknown agent in a router's rules, and suggest the nearest name."""
    from daiku.team.table import AGENTS  # when used

    agents = [*_reachable_agents(agent), *router_agents.values()]
    names = {member.name for member in agents} | set(app.runs.services.agents.own) | set(AGENTS)
    for pattern, targets in rules:
        if (unknown := next((name for name in targets if name not in names), None)) is not None:
            raise ValueError(
                f"Runner: `router` sends {pattern!r} to an agent that there is not: {unknown!r}.{_suggestion(unknown, names)}"
            )


async def check_context(
    context: object, workspace: Path | None
) -> tuple[tuple[ContextItem, ...], tuple[Image, ...]]:
    """Return the items and images of a run's context. Raises TypeError or ValueError."""
    if context == ():
        return (), ()
    from daiku.library.context import read_context  # when used

    return await asyncio.to_thread(read_context, context, workspace)


def check_images(app: App, agent: Agent) -> None:
    """Raise ValueError if the agent's model is known not to accept images."""
    from daiku.models.catalogue import find_model  # when used

    name = app.runs.services.model_of(agent, "").name
    model = find_model(name.partition("/")[2])
    if model is not None and not model.images:
        raise ValueError(f"Runner.run: `context` has a picture, and the model {name} takes none.")


def _suggestion(name: str, candidates: Iterable[str]) -> str:
    from difflib import get_close_matches  # when used

    matches = get_close_matches(name, tuple(candidates), n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def _reachable_agents(agent: Agent) -> list[Agent]:
    """Return the agent and its handoff targets, recursively, except Daiku's own agents."""
    agents: list[Agent] = []
    pending = [agent]
    while pending:
        current = pending.pop()
        if current.part is None and not any(current is known_agent for known_agent in agents):
            agents.append(current)
            pending += current.handoffs
    return agents


def names_a_model(
    model: str | Model, agent: Agent, router: Router | None = None, visited: frozenset[int] = frozenset()
) -> bool:
    """Return True if the Runner, its router, the agent, or a handoff names a model by text.

    `visited`: ids of agents already visited.
    """
    requested = agent.model or model
    router_names_model = isinstance(getattr(router, "model", None), str)
    targets = [target for target in agent.handoffs if id(target) not in visited]
    nested = (names_a_model(requested, target, visited=visited | {id(agent)}) for target in targets)
    return isinstance(requested, str) or router_names_model or any(nested)


def uses_builtin_tools(agent: Agent, visited: frozenset[int] = frozenset()) -> bool:
    """Return True if the agent or a handoff names a tool that it does not define itself."""
    targets = [target for target in agent.handoffs if id(target) not in visited]
    return agent.uses_builtin_tools or any(
        uses_builtin_tools(target, visited | {id(agent)}) for target in targets
    )

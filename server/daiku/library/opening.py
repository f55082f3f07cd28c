"""What a Runner is made with, checked; and the App that is built from it."""

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


def said(wrong: DaikuError) -> str:
    """What is wrong and what to do, in a sentence or two."""
    return " ".join(part for part in (wrong.failure.message, wrong.failure.hint) if part)


_URL = lazy(r"([a-z][a-z0-9+.-]+)://(.*)", re.IGNORECASE | re.DOTALL)


@dataclass(slots=True)
class Opening:
    """The checked parts of a Runner. `model` is for agents without one; `scratch` is the folder of tool output."""

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
    """The trace was made here, and is closed here."""
    scratch: Path = field(init=False)
    _secrets: frozenset[str] = field(default=frozenset(), init=False)
    _clean: Callable[[str], str] = field(default=str, init=False)
    _stores: Stores | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        kept = Path(f"{self.store}-files") if isinstance(self.store, Path) else None
        self.scratch = kept or Path(tempfile.gettempdir()) / f"daiku-{os.getpid()}-{id(self):x}"

    def build(self, *, named: bool, builtin: bool) -> App:
        """Build an App; stores are shared. `named`: read providers' keys and addresses from the environment.
        `builtin`: include Daiku's own tools. Raises ValueError if the settings or the store cannot be used."""
        config = self.config(os.environ if named else {})
        stores = self._opened(config)
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
        for question in app.servers.questions():  # the program names its servers itself: that is its consent
            app.servers.answer(question, "allow_once")
        return app

    def config(self, environ: Mapping[str, str]) -> Config:
        """The settings, with what `environ` says of providers. Raises ValueError."""
        try:
            config = from_mapping(self.settings, environ)
        except UsageError as wrong:
            raise ValueError(f"Runner: `settings`: {said(wrong)}") from None
        if isinstance(self.store, str):  # so that its password is known wherever secrets are looked for
            config = config.model_copy(update={"storage": StorageSettings(database_url=self.store)})
        if isinstance(self.model, str) and self.model:
            llm = config.llm.model_copy(update={"provider": "", "model": self.model})
            config = config.model_copy(update={"llm": llm})
        return config if self.limits is None else config.model_copy(update={"limits": self.limits})

    def _opened(self, config: Config) -> Stores:
        self._secrets |= frozenset(secrets_of(config, os.environ if self.workspace is not None else {}))
        self._clean = Redactor(tuple(self._secrets))
        if self._stores is None:
            try:
                self._stores = open_stores(self.store, self._redacted)
            except UsageError as wrong:
                raise ValueError(f"Runner: `store`: {said(wrong)}") from None
        return self._stores

    def _redacted(self, told: str) -> str:
        return self._clean(told)  # which knows more secrets once a model is named by text

    def close(self) -> None:
        """Close the stores, and take away what tools left where nothing was to be kept."""
        if self._stores is not None:
            self._stores.close()
        if self.trace is not None and self.keeps_trace:
            self.trace.close()
        if not isinstance(self.store, Path) and self.scratch.exists():
            shutil.rmtree(self.scratch, ignore_errors=True)


def opening(
    model: object,
    workspace: object,
    store: object,
    guardrails: object,
    memory: object,
    limits: object,
    settings: object,
    trace: object = None,
    router: object = None,
) -> Opening:
    """Return the checked parts of a Runner. Raises TypeError or ValueError that names the argument."""
    return Opening(
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
    """The file of a store, or the address of its server; None keeps it in memory."""
    if store is None:
        return None
    if not isinstance(store, str | os.PathLike):
        raise TypeError(f"Runner: `store` is a path, a database URL or None, not {type(store).__name__}.")
    named = os.fspath(cast("str | os.PathLike[str]", store))
    url = _URL.fullmatch(named)
    if url is not None and url[1].lower() in SERVER:
        return f"{url[1].lower()}://{url[2]}"
    if url is not None and url[1].lower() != "sqlite":
        raise ValueError(
            f"Runner: `store` cannot be a {url[1]} database; give a path, sqlite:///path, postgresql://…, or None for memory."
        )
    path = url[2].removeprefix("/") if url is not None else named
    if not path or path == ":memory:":
        return None
    if Path(path).is_dir():
        raise ValueError(f"Runner: `store` is a folder, not a file: {path}.")
    return Path(path).expanduser().absolute()


def _trace(trace: object) -> TraceLogger | None:
    """Return the logger of the trace: as given, or one for a path."""
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
    except ValidationError as wrong:
        raise ValueError(f"Runner: `limits`: {describe_error(wrong)}.") from None


def _mapping(name: str, value: object) -> JsonObject:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"Runner: `{name}` is a mapping, not {type(value).__name__}.")
    return dict(cast("Mapping[str, Any]", value))


def check_names(app: App, agent: Agent, router: Router | None) -> None:
    """Raise ValueError for a tool, a pattern or a router's agent that there is not, with the nearest name."""
    servers = [report.name for report in app.servers.reports()]
    for each in _reachable(agent):
        own = [tool.name for tool in each.own_tools]
        known = [*app.registry.names, *own, *(f"{name}/*" for name in servers)]
        rooms = dict.fromkeys(f"{name.split('/', 1)[0]}/*" for name in known if "/" in name)
        for pattern in (tool for tool in each.tools if isinstance(tool, str)):
            found = any(fnmatchcase(name, pattern) for name in known)
            if not found and not any(pattern.startswith(f"{name}/") for name in servers):
                near = _near(pattern, (*known, *rooms))
                raise ValueError(
                    f"Agent {each.name!r}: `tools` names no tool that there is: {pattern!r}.{near}"
                )
    if (rules := getattr(router, "rules", None)) and isinstance(rules, list):
        _check_routes(app, agent, cast("list[tuple[str, list[str]]]", rules), getattr(router, "given", {}))


def _check_routes(
    app: App, agent: Agent, rules: list[tuple[str, list[str]]], given: Mapping[str, Agent]
) -> None:
    """Raise ValueError for a router's agent that there is not, with the nearest name."""
    from daiku.team.table import AGENTS  # when used

    agents = [*_reachable(agent), *given.values()]
    names = {each.name for each in agents} | set(app.runs.services.agents.own) | set(AGENTS)
    for pattern, named in rules:
        if (lost := next((name for name in named if name not in names), None)) is not None:
            raise ValueError(
                f"Runner: `router` sends {pattern!r} to an agent that there is not: {lost!r}.{_near(lost, names)}"
            )


async def checked_context(
    context: object, workspace: Path | None
) -> tuple[tuple[ContextItem, ...], tuple[Image, ...]]:
    """Return the items of a run's context, and its pictures. Raises TypeError or ValueError."""
    if context == ():
        return (), ()
    from daiku.library.context import read_context  # when used

    return await asyncio.to_thread(read_context, context, workspace)


def check_pictures(app: App, agent: Agent) -> None:
    """Raise ValueError if the model of the agent is known to take no pictures."""
    from daiku.models.catalogue import find_model  # when used

    name = app.runs.services.model_of(agent, "").name
    known = find_model(name.partition("/")[2])
    if known is not None and not known.images:
        raise ValueError(f"Runner.run: `context` has a picture, and the model {name} takes none.")


def _near(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # when used

    near = get_close_matches(name, tuple(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _reachable(agent: Agent) -> list[Agent]:
    """Return the agent and those that it may hand work to, those of a program only."""
    found: list[Agent] = []
    left = [agent]
    while left:
        each = left.pop()
        if each.part is None and not any(each is other for other in found):
            found.append(each)
            left += each.handoffs
    return found


def names_a_model(
    model: str | Model, agent: Agent, router: Router | None = None, seen: frozenset[int] = frozenset()
) -> bool:
    """Return True if the Runner, its router, the agent or a handoff names a model by text. `seen`: ids of agents."""
    asked = agent.model or model
    routed = isinstance(getattr(router, "model", None), str)
    others = [each for each in agent.handoffs if id(each) not in seen]
    inner = (names_a_model(asked, each, seen=seen | {id(agent)}) for each in others)
    return isinstance(asked, str) or routed or any(inner)


def uses_builtin_tools(agent: Agent, seen: frozenset[int] = frozenset()) -> bool:
    """Return True if the agent or a handoff names a tool that it does not bring itself."""
    others = [each for each in agent.handoffs if id(each) not in seen]
    return agent.uses_builtin_tools or any(uses_builtin_tools(each, seen | {id(agent)}) for each in others)

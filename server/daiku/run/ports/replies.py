"""Request the model's replies for a run: system prompt, offered tools, compaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass, field, replace
from daiku.domain.messages import Message, ModelEvent, ModelRequest, Reply, Usage, UserMessage
from daiku.domain.tools import ToolSpec
from daiku.models.families import ANY_MODEL
from daiku.models.tokens import estimate, estimate_messages, estimate_tools
from daiku.run.live import ModelPrompt
from daiku.run.ports.mcp_consent import McpConsent
from daiku.run.rules.calls.toolsets import CALL, ToolSet
from daiku.run.rules.state.context import transcript
from daiku.run.rules.state.state import State
from daiku.run.run_budget import Metered
from daiku.run.run_log import RunLog
from daiku.team.system_prompt import summary_order, system_prompt
from daiku.texts.rules.decisive import truncate_output
from daiku.texts.rules.visible import show_invisible
from daiku.workspace.walk import is_large_project

if TYPE_CHECKING:
    from daiku.team.role import Role


COMPACT_SHARE = 0.8
"""Part of the model's window that may be full before old messages are condensed."""
PRICE_SHARE = 0.95
"""Part of the prompt tokens from which on a model costs more that may be sent before that."""
RESULT_SHARES = (2000, 1000, 500, 250, 120)
"""Characters of one result that the model is shown for a summary: the most with which all of it fits."""
SUMMARY_SHARE = 0.6
"""Part of the limit that a request for a summary may take: its answer needs room too."""
LONGEST_SUMMARY = 0.15
"""Part of the limit that a summary may take."""
LONGEST_WORDS = 1500


@dataclass(slots=True)
class Replies:
    """The replies of one run, and its tools. `model` is None where none is asked; `consent` starts its MCP servers.
    `share`: part of the window that may be full before old messages are condensed."""

    log: RunLog
    model: Metered | None
    consent: McpConsent | None
    share: float = COMPACT_SHARE
    tools: Mapping[str, ToolSpec] = field(init=False)
    _set: ToolSet = field(init=False)
    _system: str = field(init=False)
    _servers: int = field(init=False)
    _prefix: tuple[tuple[ToolSpec, ...] | None, str, int] = field(default=(None, "", 0), init=False)

    def __post_init__(self) -> None:
        self._offer()

    def _offer(self) -> None:
        request, services = self.log.record.state.request, self.log.services
        mode, brief = request.mode, request.brief
        servers = self.consent.servers if self.consent is not None else None
        specs, agent = services.registry.specs(), self.log.agent
        model = self.model.model if self.model is not None else None
        window = model.context if model is not None else 0
        native = model is None or model.tool_protocol == "native"
        own = agent.role.tools if agent.role is not None and native else ()
        traits = model.traits if model is not None else ANY_MODEL
        chosen = agent.sent(specs, window, traits.edits, lambda: is_large_project(services.roots))
        # The same tuple in every run, where nothing is added: a provider knows by it what it encoded last.
        self._set = replace(chosen, offered=(*chosen.offered, *own)) if own else chosen
        self.tools = {spec.name: spec for spec in agent.allowed(specs, mode)}
        told = servers.prompt() if servers is not None else ""
        system = system_prompt(
            agent,
            services.roots,
            bool(self._set.offered),
            told,
            trusted=services.trusted,
            offered=tuple(spec.name for spec in self._set.offered),
            traits=traits,
            native=native,
            depth=brief.document.depth if brief is not None and brief.document is not None else 1,
        )
        self._system = services.redact(show_invisible(system))
        self._servers = servers.version if servers is not None else 0

    @property
    def compact_at(self) -> int:
        """Tokens of context from which on old messages are condensed, before the model costs more; 0: never."""
        if self.model is None:
            return 0
        model = self.model.model
        limits = (model.context * self.share, model.price_step * PRICE_SHARE)
        return min((int(limit) for limit in limits if limit), default=0)

    async def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        """The pieces of the next reply. Raises DaikuError."""
        if self.consent is not None:
            await self.consent()
            if self.consent.servers.version != self._servers:
                self._offer()
        assert self.model is not None, "a run without a model is driven by its machine"
        request = ModelRequest(
            model="",
            system=self._system,
            messages=state.conversation.messages,
            tools=self._set.offered,
            deferred=self._set.deferred,
            session=self.log.session,
            in_words="last_word" in state.health.reminders,
        )
        role = self.log.agent.role
        pieces = self.model.stream(request) if role is None else self._in_role(role, self.model, request)
        async for piece in pieces:
            yield self._canonical(piece) if isinstance(piece, Reply) else piece

    def _in_role(self, role: Role, model: Metered, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        from daiku.team.role import stream_role_reply  # when used

        async def ask(asked: ModelRequest) -> AsyncIterator[ModelEvent]:
            async for piece in model.stream(asked):
                yield self._canonical(piece) if isinstance(piece, Reply) else piece

        protocol = None if model.model.tool_protocol == "native" else model.model.tool_protocol
        brief, nested = self.log.record.state.request.brief, self.log.parent is not None
        return stream_role_reply(role, request, ask, protocol=protocol, brief=brief, nested=nested)

    def _canonical(self, reply: Reply) -> Reply:
        """The reply with every call as it is carried out: by its tool's name, out of its tools/call."""
        from daiku.run.rules.calls.findtools import unwrap_call  # when used

        calls = reply.message.calls
        if all(call.tool in self.tools and call.tool != CALL for call in calls):
            return reply
        resolve = self.log.services.registry.resolve
        meant = (unwrap_call(call) for call in calls)
        named = tuple(call.model_copy(update={"tool": resolve(call.tool) or call.tool}) for call in meant)
        return replace(reply, message=reply.message.model_copy(update={"calls": named}))

    @property
    def model_prompt(self) -> ModelPrompt:
        """What the model is told besides the conversation."""
        return ModelPrompt(self._system, self.model.model.context if self.model is not None else 0)

    def toolset(self) -> ToolSet:
        """The tools that the model is sent, and those that it can find."""
        return self._set

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        """A summary of `messages` by the run's model and what it cost; empty where no model is asked."""
        if self.model is None:
            return "", None
        asked = UserMessage(text=self._told_for_summary(messages))
        request = ModelRequest(model="", system=summary_order(), messages=(asked,), session=self.log.session)
        async for piece in self.model.stream(request):
            if isinstance(piece, Reply):
                return piece.message.text, piece.usage
        return "", None

    def _told_for_summary(self, messages: tuple[Message, ...]) -> str:
        """What a summary is made of, so long that the request fits the window, and how long it may be."""
        limit = self.compact_at
        if not limit:
            return transcript(messages, RESULT_SHARES[0])
        room = int(limit * SUMMARY_SHARE)
        whole = ""
        for share in RESULT_SHARES:
            whole = transcript(messages, share)
            if estimate(whole, self._model_name) <= room:
                break
        else:
            whole = truncate_output(whole, room * 2)
        words = min(int(limit * LONGEST_SUMMARY * 0.75), LONGEST_WORDS)
        return f"{whole}\n\nWrite the summary of this session now, in at most {words} words."

    @property
    def _model_name(self) -> str:
        return self.log.record.state.request.model.rpartition("/")[2]

    def prefix(self) -> int:
        """Tokens of the system prompt and the tools, by estimate."""
        if self._prefix[0] is not self._set.offered or self._prefix[1] is not self._system:
            name = self._model_name
            counted = estimate(self._system, name) + estimate_tools(self._set.offered, name)
            self._prefix = (self._set.offered, self._system, counted)
        return self._prefix[2]

    def tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of `messages`, by estimate."""
        return estimate_messages(messages, self._model_name)

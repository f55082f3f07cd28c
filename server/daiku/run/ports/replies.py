"""Model requests of a run: system prompt, offered tools, compaction, and consent to MCP servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass, field, replace
from daiku.domain.base import long_id
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import ApprovalAsked, ApprovalDecision, ApprovalGiven, Notice
from daiku.domain.messages import Message, ModelEvent, ModelRequest, Reply, Usage, UserMessage
from daiku.domain.servers import ConsentQuestion
from daiku.domain.tools import ToolSpec
from daiku.models.families import ANY_MODEL
from daiku.models.tokens import estimate, estimate_messages, estimate_tools
from daiku.run.live import ModelPrompt
from daiku.run.rules.calls.findtools import CALL, ToolSet
from daiku.run.rules.state.context import transcript
from daiku.run.rules.state.machine import Recorder
from daiku.run.rules.state.state import State
from daiku.run.run_budget import Metered
from daiku.run.run_log import RunLog
from daiku.team.agent import Agent
from daiku.team.system_prompt import render_summary_prompt, render_system_prompt
from daiku.texts.rules.decisive import truncate_output
from daiku.texts.rules.visible import show_invisible
from daiku.texts.text import Text, text
from daiku.tools.mcp import McpServers
from daiku.tools.mcp.servers import START_WAIT_SECONDS
from daiku.workspace.walk import is_large_project

if TYPE_CHECKING:
    from daiku.team.role import Role


def wants_servers(servers: McpServers, agent: Agent) -> bool:
    """Return True if a run of `agent` could be offered any of their tools."""
    names = [report.name for report in servers.list_reports()]
    return any(fnmatchcase(f"{n}/*", p) or p.startswith(f"{n}/") for n in names for p in agent.patterns)


REQUIRED_WAIT = 60.0
"""Seconds that a run waits for its required servers, in total."""


def missing_tools(servers: McpServers, patterns: tuple[str, ...]) -> Failure | None:
    """Return the reason that a server or tool named by `patterns` is unavailable; None if all are available."""
    for report in servers.list_reports():
        matching = [
            p for p in patterns if fnmatchcase(f"{report.name}/*", p) or p.startswith(f"{report.name}/")
        ]
        if matching and report.status not in ("ready", "changed"):
            reason = report.why or text("mcp.no_answer_in", seconds=int(REQUIRED_WAIT))
            message = text("mcp.required", name=report.name, why=reason)
            return Failure(kind="tool", message=message, hint=report.hint)
        missing = next((p for p in matching if not any(fnmatchcase(t, p) for t in report.tools)), None)
        if missing is not None:
            offered = ", ".join(report.tools)
            return Failure(
                kind="tool", message=text("mcp.no_such_tool", name=report.name, tool=missing, offered=offered)
            )
    return None


@dataclass(slots=True)
class McpConsent:
    """Consent to the servers of one run; each question is asked once.

    Unattended runs leave out servers without consent.
    """

    servers: McpServers
    record: Recorder
    approval: Callable[[ApprovalAsked], Awaitable[ApprovalGiven]]
    attended: bool = True
    asks: bool = True
    """False in a mode without MCP calls; allowed servers start anyway, so that prompts do not change."""
    patterns: tuple[str, ...] = ()
    """Tool patterns of the agent."""
    _checked: bool = False
    _reported: set[str] = field(default_factory=set[str])

    async def __call__(self) -> None:
        """Ask, start allowed servers, and wait a limited time.

        Raises DaikuError if a required server is unavailable.
        """
        while self.asks and (questions := self._open_questions()):
            for question in questions:
                self.servers.record_answer(question, await self._ask(question))
            await self._start()
        await self._start()
        if self.servers.required and not self._checked:
            await self.servers.start_allowed(
                self._warn, person=self.attended, seconds=REQUIRED_WAIT - START_WAIT_SECONDS
            )
            if (missing := missing_tools(self.servers, self.patterns)) is not None:
                raise DaikuError(missing)
            self._checked = True

    async def _start(self) -> None:
        await self.servers.start_allowed(self._warn, person=self.attended, seconds=START_WAIT_SECONDS)

    def _warn(self, message: Text) -> None:
        self.record(Notice(level="warning", text=message))

    def _open_questions(self) -> tuple[ConsentQuestion, ...]:
        questions = self.servers.list_questions()
        if self.attended:
            return questions
        for question in questions:
            if question.key not in self._reported:
                self._reported.add(question.key)
                self._warn(text("runs.mcp_unattended", why=question.why, name=question.server))
        return ()

    async def _ask(self, question: ConsentQuestion) -> ApprovalDecision:
        state = self.record.state
        approval = state.questions.approvals.get(question.key)
        if approval is None:
            approval = _to_approval(question)
            self.record(approval)
        answer = state.questions.decisions.get(approval.approval_id) or await self.approval(approval)
        if answer.approval_id not in self.record.state.questions.decisions:
            self.record(answer)
        return answer.decision


def _to_approval(question: ConsentQuestion) -> ApprovalAsked:
    return ApprovalAsked(
        approval_id=long_id("appr"),
        kind="mcp",
        tool=f"{question.server}/*",
        args={"server": question.server},
        preview=question.preview,
        why=question.why,
        call_id=question.key,
        remember=question.remember,
        from_server=True,
    )


COMPACT_SHARE = 0.8
"""Share of the context window above which old messages are condensed."""
PRICE_SHARE = 0.95
"""Share of a model's price step, in prompt tokens, above which old messages are condensed."""
RESULT_SHARES = (2000, 1000, 500, 250, 120)
"""Characters of one result in a summary request; the largest value that fits is used."""
SUMMARY_SHARE = 0.6
"""Share of the token limit that a summary request may use; the rest is for its answer."""
LONGEST_SUMMARY = 0.15
"""Share of the token limit that a summary may use."""
LONGEST_WORDS = 1500
"""Words of a summary, at most."""


@dataclass(slots=True)
class Replies:
    """Model replies and tools of one run.

    `model` is None if the run uses no model. `consent` starts its MCP servers. `share`: share of the context
    window above which old messages are condensed.
    """

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
        self._select_tools()

    def _select_tools(self) -> None:
        request, services = self.log.record.state.request, self.log.services
        mode, brief = request.mode, request.brief
        servers = self.consent.servers if self.consent is not None else None
        specs, agent = services.registry.specs(), self.log.agent
        model = self.model.model if self.model is not None else None
        window = model.context if model is not None else 0
        native = model is None or model.tool_protocol == "native"
        role_tools = agent.role.tools if agent.role is not None and native else ()
        traits = model.traits if model is not None else ANY_MODEL
        toolset = agent.sent(specs, window, traits.edits, lambda: is_large_project(services.roots))
        # Without additions this is the same tuple in every run; providers cache its encoding by identity.
        self._set = replace(toolset, offered=(*toolset.offered, *role_tools)) if role_tools else toolset
        self.tools = {spec.name: spec for spec in agent.allowed(specs, mode)}
        server_prompt = servers.build_prompt() if servers is not None else ""
        system = render_system_prompt(
            agent,
            services.roots,
            bool(self._set.offered),
            server_prompt,
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
        """Tokens of context above which old messages are condensed, also below the price step; 0: never."""
        if self.model is None:
            return 0
        model = self.model.model
        limits = (model.context * self.share, model.price_step * PRICE_SHARE)
        return min((int(limit) for limit in limits if limit), default=0)

    async def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        """Yield the pieces of the next reply. Raises DaikuError."""
        if self.consent is not None:
            await self.consent()
            if self.consent.servers.version != self._servers:
                self._select_tools()
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
        pieces = (
            self.model.stream(request) if role is None else self._reply_in_role(role, self.model, request)
        )
        async for piece in pieces:
            yield self._normalize_calls(piece) if isinstance(piece, Reply) else piece

    def _reply_in_role(self, role: Role, model: Metered, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        from daiku.team.role import stream_role_reply  # when used

        async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            async for piece in model.stream(request):
                yield self._normalize_calls(piece) if isinstance(piece, Reply) else piece

        protocol = None if model.model.tool_protocol == "native" else model.model.tool_protocol
        brief, nested = self.log.record.state.request.brief, self.log.parent is not None
        return stream_role_reply(role, request, ask, protocol=protocol, brief=brief, nested=nested)

    def _normalize_calls(self, reply: Reply) -> Reply:
        """Return the reply with calls by their tools' registered names, unwrapped from tools/call."""
        from daiku.run.rules.calls.findtools import unwrap_call  # when used

        calls = reply.message.calls
        if all(call.tool in self.tools and call.tool != CALL for call in calls):
            return reply
        resolve = self.log.services.registry.resolve
        unwrapped = (unwrap_call(call) for call in calls)
        renamed = tuple(
            call.model_copy(update={"tool": resolve(call.tool) or call.tool}) for call in unwrapped
        )
        return replace(reply, message=reply.message.model_copy(update={"calls": renamed}))

    @property
    def model_prompt(self) -> ModelPrompt:
        """System prompt and context window of the model."""
        return ModelPrompt(self._system, self.model.model.context if self.model is not None else 0)

    def toolset(self) -> ToolSet:
        """Return the tools that the model is sent, and those that it can search."""
        return self._set

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        """Return a summary of `messages` by the run's model, and its usage; empty without a model."""
        if self.model is None:
            return "", None
        message = UserMessage(text=self._summary_prompt(messages))
        request = ModelRequest(
            model="", system=render_summary_prompt(), messages=(message,), session=self.log.session
        )
        async for piece in self.model.stream(request):
            if isinstance(piece, Reply):
                return piece.message.text, piece.usage
        return "", None

    def _summary_prompt(self, messages: tuple[Message, ...]) -> str:
        """Return the prompt of a summary that fits the context window, with its maximum length."""
        limit = self.compact_at
        if not limit:
            return transcript(messages, RESULT_SHARES[0])
        room = int(limit * SUMMARY_SHARE)
        content = ""
        for share in RESULT_SHARES:
            content = transcript(messages, share)
            if estimate(content, self._model_name) <= room:
                break
        else:
            content = truncate_output(content, room * 2)
        words = min(int(limit * LONGEST_SUMMARY * 0.75), LONGEST_WORDS)
        return f"{content}\n\nWrite the summary of this session now, in at most {words} words."

    @property
    def _model_name(self) -> str:
        return self.log.record.state.request.model.rpartition("/")[2]

    def prefix(self) -> int:
        """Return the estimated tokens of the system prompt and the tools."""
        if self._prefix[0] is not self._set.offered or self._prefix[1] is not self._system:
            name = self._model_name
            counted = estimate(self._system, name) + estimate_tools(self._set.offered, name)
            self._prefix = (self._set.offered, self._system, counted)
        return self._prefix[2]

    def tokens(self, messages: Sequence[Message]) -> int:
        """Return the estimated tokens of `messages`."""
        return estimate_messages(messages, self._model_name)

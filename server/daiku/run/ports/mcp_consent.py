"""Consent to MCP servers: ask the person before a model call, then start the servers that are allowed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase

from daiku.dataclass import dataclass, field
from daiku.domain.base import long_id
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import ApprovalAsked, ApprovalDecision, ApprovalGiven, Notice
from daiku.domain.servers import ConsentQuestion
from daiku.run.rules.state.recorder import Recorder
from daiku.team.agent import Agent
from daiku.texts.text import Text, text
from daiku.tools.mcp import McpServers
from daiku.tools.mcp.servers import FIRST_WAIT


def wants_servers(servers: McpServers, agent: Agent) -> bool:
    """Whether a run of `agent` could be offered any of their tools."""
    names = [report.name for report in servers.reports()]
    return any(fnmatchcase(f"{n}/*", p) or p.startswith(f"{n}/") for n in names for p in agent.patterns)


REQUIRED_WAIT = 60.0
"""Seconds that a run waits in all for servers without which it fails."""


def missing_tools(servers: McpServers, patterns: tuple[str, ...]) -> Failure | None:
    """Return why servers or tools of servers that `patterns` name cannot be used; None where all can."""
    for report in servers.reports():
        named = [p for p in patterns if fnmatchcase(f"{report.name}/*", p) or p.startswith(f"{report.name}/")]
        if named and report.status not in ("ready", "changed"):
            why = report.why or text("mcp.no_answer_in", seconds=int(REQUIRED_WAIT))
            message = text("mcp.required", name=report.name, why=why)
            return Failure(kind="tool", message=message, hint=report.hint)
        lost = next((p for p in named if not any(fnmatchcase(t, p) for t in report.tools)), None)
        if lost is not None:
            offered = ", ".join(report.tools)
            return Failure(
                kind="tool", message=text("mcp.no_such_tool", name=report.name, tool=lost, offered=offered)
            )
    return None


@dataclass(slots=True)
class McpConsent:
    """The servers of one run: each question is asked once. Unattended, what is not allowed yet is left out."""

    servers: McpServers
    record: Recorder
    approval: Callable[[ApprovalAsked], Awaitable[ApprovalGiven]]
    attended: bool = True
    asks: bool = True
    """False in a mode without MCP calls: allowed servers start all the same, so that prompts do not change."""
    patterns: tuple[str, ...] = ()
    """The tools that the agent names."""
    _checked: bool = False
    _told: set[str] = field(default_factory=set[str])

    async def __call__(self) -> None:
        """Ask, start what is allowed, wait a bounded time. Raises DaikuError: a required server cannot be used."""
        while self.asks and (questions := self._open()):
            for question in questions:
                self.servers.answer(question, await self._decision(question))
            await self._start()
        await self._start()
        if self.servers.required and not self._checked:
            await self.servers.ready(self._hear, person=self.attended, seconds=REQUIRED_WAIT - FIRST_WAIT)
            if (missing := missing_tools(self.servers, self.patterns)) is not None:
                raise DaikuError(missing)
            self._checked = True

    async def _start(self) -> None:
        await self.servers.ready(self._hear, person=self.attended, seconds=FIRST_WAIT)

    def _hear(self, said: Text) -> None:
        self.record(Notice(level="warning", text=said))

    def _open(self) -> tuple[ConsentQuestion, ...]:
        questions = self.servers.questions()
        if self.attended:
            return questions
        for question in questions:
            if question.key not in self._told:
                self._told.add(question.key)
                self._hear(text("runs.mcp_unattended", why=question.why, name=question.server))
        return ()

    async def _decision(self, question: ConsentQuestion) -> ApprovalDecision:
        state = self.record.state
        asked = state.questions.approvals.get(question.key)
        if asked is None:
            asked = _asked(question)
            self.record(asked)
        given = state.questions.decisions.get(asked.approval_id) or await self.approval(asked)
        if given.approval_id not in self.record.state.questions.decisions:
            self.record(given)
        return given.decision


def _asked(question: ConsentQuestion) -> ApprovalAsked:
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

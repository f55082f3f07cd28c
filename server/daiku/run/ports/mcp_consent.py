"""Consent to MCP servers: ask the user before a model call, then start the allowed servers."""

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
from daiku.tools.mcp.servers import START_WAIT_SECONDS


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

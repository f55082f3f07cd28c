"""The reporter agent: summarizes the work as claims, each linked to the records that prove it."""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, JsonValue, field_validator

from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, Message
from daiku.domain.tools import ToolSpec
from daiku.domain.work.handovers import Brief, Claim, Findings, Proof, Report, ReportMade
from daiku.models.rules.replies.parse import Unreadable, read_json
from daiku.prompts import render
from daiku.run.rules.calls.arguments import schema_of
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.handover_text import format_work_so_far
from daiku.team.form_tool import with_tool_call
from daiku.team.part import Part, Stage
from daiku.team.role import Role
from daiku.team.rules.plans.transitions import render_checklist
from daiku.team.rules.summary import build_plain_report, describe_proof, list_proofs
from daiku.texts.text import NO_TEXT, Text, joined, text
from daiku.tools.rules.web.research import format_sources


class ReportVariables(Frozen):
    """Template variables of the reporter's request: everything that was recorded."""

    request: str
    plan: str
    findings: str
    happened: str
    proofs: tuple[tuple[str, str], ...]
    """Reference and description of each proof."""


def build_report_request(brief: Brief) -> str:
    """Build the reporter's request."""
    findings = brief.findings
    return render(
        "agents/reporter_request",
        ReportVariables(
            request=brief.request,
            plan=render_checklist(brief.plan) if brief.plan is not None else "",
            findings=_format_findings(findings) if findings else "",
            happened=format_work_so_far(brief),
            proofs=tuple((ref, describe_proof(p)) for ref, p in _number_proofs(brief).items()),
        ),
    ).strip()


def _format_findings(findings: Findings) -> Text:
    """Return the researcher's notes, then the sources by query."""
    return joined("paragraphs", (findings.notes, format_sources(findings.queries, findings.results)))


def build_report(state: State) -> ReportMade | Unreadable:
    """Return the model's report with its references resolved, else one built from the records."""
    brief = state.request.brief
    last_reply = next(
        (m for m in reversed(state.conversation.messages) if isinstance(m, AssistantMessage)), None
    )
    reply = _find_reply(last_reply) if last_reply is not None else None
    if reply is not None:
        proofs = _number_proofs(brief)
        claims = tuple(
            Claim(text=Text(c.text), proofs=tuple(proofs[ref] for ref in c.refs if ref in proofs))
            for c in reply.claims
        )
        return ReportMade(report=Report(text=Text(reply.text), claims=claims))
    if brief is None:
        return Unreadable(text("roles.nothing_to_report"))
    return ReportMade(report=build_plain_report(brief))


class ClaimReply(Frozen):
    """One sentence, and the references of its proofs."""

    text: str = Field(min_length=1, description="one sentence")
    refs: tuple[str, ...] = Field(default=(), description="of what proves it: P1, P2, …")

    @field_validator("refs", mode="before")
    @classmethod
    def _normalize_refs(cls, value: Any) -> Any:
        """Accept a single reference, and references in brackets."""
        items: Any = [value] if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            return value
        return tuple(str(ref).strip(" []`") for ref in items)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # JSON from a model


class ReportReply(Frozen):
    """The reporter's reply."""

    text: str = Field(min_length=1, description="a few sentences of Markdown")
    claims: tuple[ClaimReply, ...] = Field(default=(), description="what was done or works")


SPEC = ToolSpec(
    name="report/work",
    description="End your work with this report.",
    parameters=schema_of(ReportReply),
    effect="none",
)


def read(
    message: AssistantMessage, _messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """Read the report, as JSON or as Markdown whose list items are the claims."""
    if message.calls:
        return message
    reply = read_json(message.text, ReportReply.model_validate, cut=cut)
    if isinstance(reply, Unreadable):
        if cut or "{" in message.text:
            return reply
        reply = _parse_markdown(message.text)
    return reply if isinstance(reply, Unreadable) else _build_message(message, reply)


def judge_prose(_message: AssistantMessage, _messages: tuple[Message, ...]) -> Unreadable:
    """Ask once for the claims that plain text does not make."""
    return Unreadable(text("roles.report_without_claims"))


def accept_plain_text(message: AssistantMessage) -> AssistantMessage:
    """Accept plain text as a report; the team shows it as the reporter's unchecked statement."""
    return _build_message(message, ReportReply(text=message.text))


def _build_message(message: AssistantMessage, reply: ReportReply) -> AssistantMessage:
    data: dict[str, JsonValue] = {"report": reply.model_dump(mode="json")}
    return AssistantMessage(text=_render_reply(reply), thinking=message.thinking, opaque={"daiku": data})


_ITEM = re.compile(r"^\s*[-*+]\s+(?:\[[ xX]\]\s+)?(.+)$")
_REFS = re.compile(r"\[(P\d+(?:\s*[,;]\s*P\d+)*)\]")


def _parse_markdown(reply: str) -> ReportReply | Unreadable:
    judge_prose: list[str] = []
    claims: list[ClaimReply] = []
    for line in reply.strip().splitlines():
        item = _ITEM.match(line)
        if item is None:
            judge_prose.append(_REFS.sub("", line).rstrip())
            continue
        refs = tuple(ref for group in _REFS.findall(line) for ref in re.split(r"\s*[,;]\s*", group))
        words = _REFS.sub("", item[1]).strip()
        if words:
            claims.append(ClaimReply(text=words, refs=refs))
    head = "\n".join(judge_prose).strip()
    if not head or not claims:
        problem = text("roles.report_without_claims") if head else text("roles.report_without_text")
        return Unreadable(problem, words_only=bool(head))
    return ReportReply(text=head, claims=tuple(claims))


def find_unknown_references(message: AssistantMessage, brief: Brief | None) -> Text:
    """Return an error if a claim names an unknown reference; empty if none does."""
    reply, available = _find_reply(message), _number_proofs(brief)
    invented = sorted(
        {ref for claim in reply.claims for ref in claim.refs if ref not in available} if reply else ()
    )
    names = ", ".join(available) or "none"
    return text("roles.no_reference", names=", ".join(invented), known=names) if invented else NO_TEXT


def _find_reply(message: AssistantMessage) -> ReportReply | None:
    data = message.opaque.get("daiku")
    return ReportReply.model_validate(data["report"]) if isinstance(data, dict) and "report" in data else None


def _render_reply(reply: ReportReply) -> Text:
    """Render the reply as Markdown, each claim with its references."""
    claims = [
        text("team.claim", claim=claim.text, proofs=", ".join(claim.refs) or text("team.not_checked"))
        for claim in reply.claims
    ]
    return joined("paragraphs", (Text(reply.text), joined("lines", claims)))


def _number_proofs(brief: Brief | None) -> dict[str, Proof]:
    """Return the proofs by reference (P1, P2, …), as shown to the reporter."""
    return {f"P{number}": proof for number, proof in enumerate(list_proofs(brief) if brief else (), 1)}


def _skip_after_calls(_: tuple[Message, ...]) -> None:
    return None


REPORT = Role(
    with_tool_call(SPEC, read),
    _skip_after_calls,
    accept_plain_text=accept_plain_text,
    prose=judge_prose,
    tools=(SPEC,),
    unfit=find_unknown_references,
)


REPORTER = Agent(
    "reporter",
    Prompt("agents/reporter"),
    tools=("files/read", "search/text", "git/diff"),
    part=Part(
        label=Label("Reporter", "レポーター"),
        description="reports what came of the work, each claim with its proof",
        role=REPORT,
        stage=Stage(build_report, build_report_request),
    ),
)

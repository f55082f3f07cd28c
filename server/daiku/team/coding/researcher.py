"""The researcher agent: runs at most three web queries and cites its sources by address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias, cast

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, Message, ToolMessage, is_own
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.domain.work.handovers import Brief, Findings
from daiku.domain.work.plans import Plan
from daiku.models.rules.replies.parse import Unreadable
from daiku.models.rules.replies.roleforms import MAX_QUERIES, QueriesReply, read_queries
from daiku.prompts import render
from daiku.run.rules.calls.arguments import explain_problems, parse_arguments, schema_of
from daiku.run.rules.calls.toolnames import match_spelling, wire_name
from daiku.run.rules.state.state import State
from daiku.team.agent import LOOKING, Agent, Prompt
from daiku.team.part import Part, Stage
from daiku.team.role import Role, merge_role_calls, select_messages_since_request
from daiku.team.rules.plans.transitions import render_checklist
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, Text, as_json, joined, text
from daiku.tools.rules.web.research import extract_keywords, list_queries, select_queries

REPORT = "report/findings"
FROM_THE_WEB = ("web/search", "web/research", "web/fetch")


def _join_parts(value: Any) -> Any:
    """Join a list of findings into one text."""
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    return (
        "\n\n".join(parts) if parts and all(isinstance(part, str) for part in parts) else cast("Any", value)
    )


FindingsText: TypeAlias = Annotated[str, BeforeValidator(_join_parts)]


class FindingsReport(Frozen):
    """The researcher's report. All fields are optional; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    findings: FindingsText = Field(
        default="", description="what you found, facts first, each with its source"
    )
    sources: tuple[str, ...] = Field(default=(), description="addresses, or path:line in the project")
    queries: tuple[str, ...] = Field(default=(), description="up to 3 web queries for Daiku to carry out")
    ask_user: str = Field(default="", description="a question that only the person can answer")


SPEC = ToolSpec(
    name=REPORT,
    description="End your work with this report. With `queries` Daiku looks them up, reads the best page of each and hands the sources on with your report.",
    parameters=schema_of(FindingsReport),
    effect="none",
)


def find_report_call(message: AssistantMessage) -> ToolCall | None:
    """Return the call that reports; None if there is none."""
    return next((call for call in message.calls if _is_report(call)), None)


def _is_report(call: ToolCall) -> bool:
    return match_spelling(call.tool, (REPORT,)) is not None


def read_report(call: ToolCall) -> FindingsReport | Unreadable:
    """Parse the report of a call; return the problem, for the model, if the arguments are wrong."""
    if call.malformed is not None:
        return Unreadable(text("roles.report_no_json", tool=wire_name(REPORT)))
    try:
        return parse_arguments(FindingsReport, call.args)
    except ValidationError as error:
        return Unreadable(Text(explain_problems(wire_name(REPORT), FindingsReport, error)))


def drop_report_calls(message: AssistantMessage) -> AssistantMessage:
    """Return the reply without its reporting calls."""
    return message.model_copy(update={"calls": tuple(c for c in message.calls if not _is_report(c))})


def format_report(report: FindingsReport, recent: Sequence[AssistantMessage | ToolMessage]) -> Text:
    """Render the findings and their sources; addresses that no web tool of this run returned are marked."""
    pages = [m.text for m in recent if isinstance(m, ToolMessage) and m.ok and m.tool in FROM_THE_WEB]
    lines = [
        f"- {source}"
        if not source.startswith(("http://", "https://")) or any(source in page for page in pages)
        else text("roles.source_not_opened", source=source)
        for source in (entry.strip() for entry in report.sources)
        if source
    ]
    sources = joined("lines", [text("roles.sources"), *lines]) if lines else NO_TEXT
    return joined("paragraphs", (report.findings.strip(), sources))


SEARCHES = ("web/search", "web/research")
MAX_NOTES = 4000
"""Maximum characters of the researcher's notes that are passed on."""
REPORT_KEY = "found"
"""Key of the report in a reply's data."""
EMPTY_REPORT = FindingsReport()


class ResearchVariables(Frozen):
    """Template variables of the researcher's request (R0.36)."""

    step_by_step_plan: str
    contextual_keywords: str
    question: str


def build_research_request(plan: Plan | None, question: str = "") -> str:
    """Build the researcher's request; keywords come from the plan's focus (C0.19), else from the question."""
    focus = f"{plan.focus or plan.goal} {plan.name}" if plan is not None else question
    return render(
        "agents/researcher_request",
        ResearchVariables(
            step_by_step_plan=render_checklist(plan) if plan is not None else "",
            contextual_keywords=extract_keywords(focus),
            question=question,
        ),
    )


def build_request_from_brief(brief: Brief) -> str:
    """Build the researcher's request from a brief."""
    return build_research_request(brief.plan, brief.request)


def collect_findings(state: State) -> Findings | Unreadable:
    """Return the run's web results and notes on them; an empty result is valid."""
    return Findings(**dict(state.research), notes=truncate_middle(_find_notes(state), MAX_NOTES))


def _find_notes(state: State) -> str:
    """Return what the model reported, else its last text."""
    recent = select_messages_since_request(state.conversation.messages)
    replies = [m for m in recent if isinstance(m, AssistantMessage) and not is_own(m)]
    reported = next(
        (str(words) for m in reversed(replies) if (words := format_report(_find_report(m), recent))), ""
    )
    last = replies[-1] if replies else None
    return reported or (last.text if last is not None and not last.calls and not last.opaque else "")


def read(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """Return the reply with the call for its queries.

    The model's own searches count towards the limit of three. Plain text is accepted after a search.
    """
    recent = select_messages_since_request(messages)
    searched = select_queries(
        query for m in recent if isinstance(m, AssistantMessage) for query in list_queries(m)
    )
    if (call := find_report_call(message)) is not None:
        report = read_report(call)
        if isinstance(report, Unreadable):
            return report
        rest = _limit_searches(drop_report_calls(message), searched)
        requested = QueriesReply(report.queries[:MAX_QUERIES], report.ask_user)
        all_queries = select_queries((*searched, *list_queries(rest)))
        form = _build_research(requested, message.thinking, all_queries, format_report(report, recent))
        form = _add_report(form, report)
        return merge_role_calls(rest, form) if rest.calls else form
    if message.calls:
        own = _limit_searches(message, searched)
        return merge_role_calls(
            own, _parse_form(own, select_queries((*searched, *list_queries(own))), NO_TEXT, cut)
        )
    sources = joined(
        "paragraphs",
        [m.sources or m.text for m in recent if isinstance(m, ToolMessage) and m.tool in SEARCHES and m.ok],
    )
    parsed = _parse_form(message, searched, sources, cut)
    has_results = any(isinstance(m, ToolMessage) and m.ok for m in recent)
    is_plain_text = isinstance(parsed, Unreadable) and parsed.words_only and not cut
    return message if has_results and is_plain_text else parsed


def _parse_form(
    message: AssistantMessage, searched: tuple[str, ...], sources: Text, cut: bool
) -> AssistantMessage | Unreadable:
    """Parse the form in a reply. `searched`: queries that ran already, with their `sources`."""
    reply = read_queries(message.text, cut=cut)
    if isinstance(reply, Unreadable):
        return reply
    return _build_research(reply, message.thinking, searched, sources)


def _add_report(form: AssistantMessage, report: FindingsReport) -> AssistantMessage:
    """Return the reply with the report in its data, for later steps and the handover."""
    data = form.opaque["daiku"]
    assert isinstance(data, dict), "made by _build_research"
    return form.model_copy(update={"opaque": {"daiku": {**data, REPORT_KEY: report.model_dump(mode="json")}}})


def _find_report(message: AssistantMessage | None) -> FindingsReport:
    """Return the report in a reply's data; an empty one if there is none."""
    data = message.opaque.get("daiku") if message is not None else None
    return (
        FindingsReport.model_validate(data[REPORT_KEY])
        if isinstance(data, dict) and REPORT_KEY in data
        else EMPTY_REPORT
    )


def _build_research(
    reply: QueriesReply, thinking: str, searched: tuple[str, ...], sources: Text
) -> AssistantMessage:
    """Build the call for the new queries; without any, build the final reply from the sources."""
    searched_keys = {query.casefold() for query in searched}
    new_queries = [q for q in select_queries(reply.queries) if q.casefold() not in searched_keys][
        : MAX_QUERIES - len(searched)
    ]
    data: dict[str, JsonValue] = {"queries": [*searched, *new_queries], "askUser": reply.ask_user}
    if not reply.whole:
        data["remark"] = as_json(text("roles.no_ask_user"))
    if not new_queries:
        answer = joined("paragraphs", (sources, reply.ask_user)) or text("roles.nothing_to_look_up")
        return AssistantMessage(text=answer, thinking=thinking, opaque={"daiku": data})
    queries: list[JsonValue] = list(new_queries)
    return AssistantMessage(
        text=Text("\n".join(f"- {query}" for query in new_queries)),
        thinking=thinking,
        calls=(ToolCall(tool="web/research", args={"queries": queries}),),
        opaque={"daiku": data},
    )


def accept_plain_text(message: AssistantMessage) -> AssistantMessage:
    """Accept a plain-text answer as the result, unchanged."""
    return message


def continue_after_calls(messages: tuple[Message, ...]) -> AssistantMessage | None:
    """Return the sources by query, and any question to the user, once the queries were looked up; else None."""
    recent = select_messages_since_request(messages)
    result = recent[-1] if recent else None
    reply = next((m for m in reversed(recent) if isinstance(m, AssistantMessage)), None)
    data = reply.opaque.get("daiku") if reply is not None else None
    if not isinstance(data, dict) or "queries" not in data:
        return None
    if not isinstance(result, ToolMessage) or result.tool != "web/research":
        return None
    report, question = format_report(_find_report(reply), recent), str(data.get("askUser") or "")
    sources = (result.sources or result.text) if result.ok else text("roles.not_looked_up", why=result.text)
    return AssistantMessage(text=joined("paragraphs", (report, sources, question)))


def _limit_searches(message: AssistantMessage, searched: tuple[str, ...]) -> AssistantMessage:
    """Return the reply without searches beyond the limit of three queries."""
    searches_left = MAX_QUERIES - len(searched)
    calls: list[ToolCall] = []
    dropped = 0
    for call in message.calls:
        if call.tool not in SEARCHES:
            calls.append(call)
            continue
        requested = list_queries(AssistantMessage(calls=(call,)))
        if len(requested) > searches_left:
            dropped += len(requested) - searches_left
            requested = requested[:searches_left]
            if call.tool == "web/research" and requested:
                queries: list[JsonValue] = list(requested)
                call = call.model_copy(update={"args": {**call.args, "queries": queries}})
        if requested:
            calls.append(call)
            searches_left -= len(requested)
    if not dropped:
        return message
    note = text("roles.searches_left_out", count=dropped, most=MAX_QUERIES)
    return AssistantMessage(
        text=joined("paragraphs", (message.text, note)), thinking=message.thinking, calls=tuple(calls)
    )


def _has_results(messages: tuple[Message, ...]) -> bool:
    return any(isinstance(m, ToolMessage) for m in select_messages_since_request(messages))


RESEARCH = Role(
    read, continue_after_calls, accept_plain_text=accept_plain_text, tools=(SPEC,), has_result=_has_results
)


RESEARCHER = Agent(
    "researcher",
    Prompt("agents/researcher"),
    tools=(*LOOKING, "web/*", "user/ask"),
    part=Part(
        label=Label("Researcher", "リサーチャー"),
        description="looks up on the web what is not known, and names its sources",
        role=RESEARCH,
        stage=Stage(collect_findings, build_request_from_brief),
    ),
)

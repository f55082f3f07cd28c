"""The researcher: at most three queries for what a model does not know, carried out, cited by address."""

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
from daiku.team.role import Role, merge_role_calls, messages_since_request
from daiku.team.rules.plans.transitions import checklist
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, Text, as_json, joined, text
from daiku.tools.rules.web.research import distinct_queries, keywords, queries_of

REPORT = "report/findings"
FROM_THE_WEB = ("web/search", "web/research", "web/fetch")


def _as_text(value: Any) -> Any:
    """Several findings that came as a list, as one text."""
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    return (
        "\n\n".join(parts) if parts and all(isinstance(part, str) for part in parts) else cast("Any", value)
    )


FindingsText: TypeAlias = Annotated[str, BeforeValidator(_as_text)]


class FindingsReport(Frozen):
    """Report of the researcher. Every part may be missing, and unknown parts are ignored."""

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


def report_in(message: AssistantMessage) -> ToolCall | None:
    """Return the call that reports; None if there is none."""
    return next((call for call in message.calls if _reports(call)), None)


def _reports(call: ToolCall) -> bool:
    return match_spelling(call.tool, (REPORT,)) is not None


def read_report(call: ToolCall) -> FindingsReport | Unreadable:
    """Read the report of a call; for wrong arguments return the problem, for the model."""
    if call.malformed is not None:
        return Unreadable(text("roles.report_no_json", tool=wire_name(REPORT)))
    try:
        return parse_arguments(FindingsReport, call.args)
    except ValidationError as error:
        return Unreadable(Text(explain_problems(wire_name(REPORT), FindingsReport, error)))


def without_report(message: AssistantMessage) -> AssistantMessage:
    """Return the reply without its reporting calls."""
    return message.model_copy(update={"calls": tuple(c for c in message.calls if not _reports(c))})


def report_words(report: FindingsReport, here: Sequence[AssistantMessage | ToolMessage]) -> Text:
    """Render the findings and their sources; addresses that no web tool of this run returned are marked."""
    seen = [m.text for m in here if isinstance(m, ToolMessage) and m.ok and m.tool in FROM_THE_WEB]
    lines = [
        f"- {source}"
        if not source.startswith(("http://", "https://")) or any(source in page for page in seen)
        else text("roles.source_not_opened", source=source)
        for source in (each.strip() for each in report.sources)
        if source
    ]
    sources = joined("lines", [text("roles.sources"), *lines]) if lines else NO_TEXT
    return joined("paragraphs", (report.findings.strip(), sources))


SEARCHES = ("web/search", "web/research")
MAX_NOTES = 4000
"""Characters of what the researcher says that are handed on."""
FOUND = "found"
"""Under this key a reply of the researcher holds its report."""
NOTHING = FindingsReport()


class ResearchVariables(Frozen):
    """What the researcher is told of the work (R0.36)."""

    step_by_step_plan: str
    contextual_keywords: str
    question: str


def research_request(plan: Plan | None, question: str = "") -> str:
    """Build the request to the researcher; keywords come from the plan's focus (C0.19), else from the question."""
    focus = f"{plan.focus or plan.goal} {plan.name}" if plan is not None else question
    return render(
        "team/researcher_request",
        ResearchVariables(
            step_by_step_plan=checklist(plan) if plan is not None else "",
            contextual_keywords=keywords(focus),
            question=question,
        ),
    )


def find_request(brief: Brief) -> str:
    """Build the researcher's request from a brief."""
    return research_request(brief.plan, brief.request)


def findings(state: State) -> Findings | Unreadable:
    """Return what the run found on the web and what it says of it; an empty result is valid."""
    return Findings(**dict(state.research), notes=truncate_middle(_notes(state), MAX_NOTES))


def _notes(state: State) -> str:
    """What the model reported, else its last words."""
    here = messages_since_request(state.conversation.messages)
    said = [m for m in here if isinstance(m, AssistantMessage) and not is_own(m)]
    reported = next((str(words) for m in reversed(said) if (words := report_words(_report_of(m), here))), "")
    last = said[-1] if said else None
    return reported or (last.text if last is not None and not last.calls and not last.opaque else "")


def read(
    message: AssistantMessage, messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """Return the reply with the call for its queries; the model's own searches count towards the limit of three. Plain
    text counts after a search."""
    here = messages_since_request(messages)
    asked = distinct_queries(
        query for m in here if isinstance(m, AssistantMessage) for query in queries_of(m)
    )
    if (call := report_in(message)) is not None:
        report = read_report(call)
        if isinstance(report, Unreadable):
            return report
        rest = _within_three(without_report(message), asked)
        wanted = QueriesReply(report.queries[:MAX_QUERIES], report.ask_user)
        done = distinct_queries((*asked, *queries_of(rest)))
        form = _looked_up(wanted, message.thinking, done, report_words(report, here))
        form = _with_report(form, report)
        return merge_role_calls(rest, form) if rest.calls else form
    if message.calls:
        own = _within_three(message, asked)
        return merge_role_calls(own, _form(own, distinct_queries((*asked, *queries_of(own))), NO_TEXT, cut))
    known = joined(
        "paragraphs",
        [m.sources or m.text for m in here if isinstance(m, ToolMessage) and m.tool in SEARCHES and m.ok],
    )
    found = _form(message, asked, known, cut)
    looked = any(isinstance(m, ToolMessage) and m.ok for m in here)
    words = isinstance(found, Unreadable) and found.words_only and not cut
    return message if looked and words else found


def _form(
    message: AssistantMessage, asked: tuple[str, ...], sources: Text, cut: bool
) -> AssistantMessage | Unreadable:
    """What the form in a reply comes to, where `asked` was looked up already and gave `sources`."""
    reply = read_queries(message.text, cut=cut)
    if isinstance(reply, Unreadable):
        return reply
    return _looked_up(reply, message.thinking, asked, sources)


def _with_report(form: AssistantMessage, report: FindingsReport) -> AssistantMessage:
    """The reply with the report in it as a value, for what comes after its queries and for the hand-over."""
    told = form.opaque["daiku"]
    assert isinstance(told, dict), "made by _looked_up"
    return form.model_copy(update={"opaque": {"daiku": {**told, FOUND: report.model_dump(mode="json")}}})


def _report_of(message: AssistantMessage | None) -> FindingsReport:
    """The report that a reply of the run holds; an empty one where it holds none."""
    told = message.opaque.get("daiku") if message is not None else None
    return FindingsReport.model_validate(told[FOUND]) if isinstance(told, dict) and FOUND in told else NOTHING


def _looked_up(
    reply: QueriesReply, thinking: str, asked: tuple[str, ...], known_now: Text
) -> AssistantMessage:
    """The call that looks up the queries that are new; the last words, with what is known, where there are none."""
    known = {query.casefold() for query in asked}
    fresh = [q for q in distinct_queries(reply.queries) if q.casefold() not in known][
        : MAX_QUERIES - len(asked)
    ]
    told: dict[str, JsonValue] = {"queries": [*asked, *fresh], "askUser": reply.ask_user}
    if not reply.whole:
        told["remark"] = as_json(text("roles.no_ask_user"))
    if not fresh:
        said = joined("paragraphs", (known_now, reply.ask_user)) or text("roles.nothing_to_look_up")
        return AssistantMessage(text=said, thinking=thinking, opaque={"daiku": told})
    queries: list[JsonValue] = list(fresh)
    return AssistantMessage(
        text=Text("\n".join(f"- {query}" for query in fresh)),
        thinking=thinking,
        calls=(ToolCall(tool="web/research", args={"queries": queries}),),
        opaque={"daiku": told},
    )


def accept_plain_text(message: AssistantMessage) -> AssistantMessage:
    """Accept a plain-text answer as the result, unchanged."""
    return message


def after_calls(messages: tuple[Message, ...]) -> AssistantMessage | None:
    """Return the sources by query, and any question to the user, once the queries were looked up; else None."""
    here = messages_since_request(messages)
    answer = here[-1] if here else None
    spoke = next((m for m in reversed(here) if isinstance(m, AssistantMessage)), None)
    said = spoke.opaque.get("daiku") if spoke is not None else None
    if not isinstance(said, dict) or "queries" not in said:
        return None
    if not isinstance(answer, ToolMessage) or answer.tool != "web/research":
        return None
    found, asked = report_words(_report_of(spoke), here), str(said.get("askUser") or "")
    looked = (answer.sources or answer.text) if answer.ok else text("roles.not_looked_up", why=answer.text)
    return AssistantMessage(text=joined("paragraphs", (found, looked, asked)))


def _within_three(message: AssistantMessage, asked: tuple[str, ...]) -> AssistantMessage:
    """The reply without the searches that would be more than three."""
    left = MAX_QUERIES - len(asked)
    kept: list[ToolCall] = []
    over = 0
    for call in message.calls:
        if call.tool not in SEARCHES:
            kept.append(call)
            continue
        wanted = queries_of(AssistantMessage(calls=(call,)))
        if len(wanted) > left:
            over += len(wanted) - left
            wanted = wanted[:left]
            if call.tool == "web/research" and wanted:
                queries: list[JsonValue] = list(wanted)
                call = call.model_copy(update={"args": {**call.args, "queries": queries}})
        if wanted:
            kept.append(call)
            left -= len(wanted)
    if not over:
        return message
    note = text("roles.searches_left_out", count=over, most=MAX_QUERIES)
    return AssistantMessage(
        text=joined("paragraphs", (message.text, note)), thinking=message.thinking, calls=tuple(kept)
    )


def _has_looked(messages: tuple[Message, ...]) -> bool:
    return any(isinstance(m, ToolMessage) for m in messages_since_request(messages))


RESEARCH = Role(read, after_calls, accept_plain_text=accept_plain_text, tools=(SPEC,), has_result=_has_looked)


RESEARCHER = Agent(
    "researcher",
    Prompt("team/researcher"),
    tools=(*LOOKING, "web/*", "user/ask"),
    part=Part(
        label=Label("Researcher", "リサーチャー"),
        description="looks up on the web what is not known, and names its sources",
        role=RESEARCH,
        stage=Stage(findings, find_request),
    ),
)

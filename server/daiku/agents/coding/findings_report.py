"""The researcher's report as the call of a tool: what it found, its sources, what is still to be looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias, cast

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from daiku.core.calls.arguments import explain_problems, parse_arguments, schema_of
from daiku.core.calls.toolnames import match_spelling, wire_name
from daiku.core.replies.parse import Unreadable
from daiku.domain.base import Frozen
from daiku.domain.messages import AssistantMessage, ToolMessage
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.texts.text import NO_TEXT, Text, joined, text

REPORT = "report/findings"
FROM_THE_WEB = ("web/search", "web/research", "web/fetch")


def _as_text(value: Any) -> Any:
    """Several findings that came as a list, as one text."""
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    return (
        "\n\n".join(parts) if parts and all(isinstance(part, str) for part in parts) else cast("Any", value)
    )


Findings: TypeAlias = Annotated[str, BeforeValidator(_as_text)]


class FindingsReport(Frozen):
    """What the researcher reports; every part may be missing, and what else is there counts for nothing."""

    model_config = ConfigDict(extra="ignore")

    findings: Findings = Field(default="", description="what you found, facts first, each with its source")
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
    """The call that reports; None where there is none."""
    return next((call for call in message.calls if _reports(call)), None)


def _reports(call: ToolCall) -> bool:
    return match_spelling(call.tool, (REPORT,)) is not None


def read_report(call: ToolCall) -> FindingsReport | Unreadable:
    """The report that a call carries, or what is wrong with its arguments, for the model."""
    if call.malformed is not None:
        return Unreadable(text("roles.report_no_json", tool=wire_name(REPORT)))
    try:
        return parse_arguments(FindingsReport, call.args)
    except ValidationError as error:
        return Unreadable(Text(explain_problems(wire_name(REPORT), FindingsReport, error)))


def without_report(message: AssistantMessage) -> AssistantMessage:
    """The reply with its other calls alone."""
    return message.model_copy(update={"calls": tuple(c for c in message.calls if not _reports(c))})


def report_words(report: FindingsReport, here: Sequence[AssistantMessage | ToolMessage]) -> Text:
    """The findings and their sources to be read; an address that no web tool of this run returned is marked."""
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

"""What came of a call is a value, and `ok` follows from it."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from daiku.domain.events import ToolResponse
from daiku.domain.messages import ToolMessage
from daiku.domain.tools import Outcome, ToolResult
from tests.cases import for_each

ANSWERS: dict[type[ToolResult | ToolMessage | ToolResponse], dict[str, Any]] = {
    ToolResult: {"text": "x"},
    ToolMessage: {"call_id": "c", "tool": "files/read", "text": "x"},
    ToolResponse: {"id": "c", "tool": "files/read", "result": "x"},
}


@for_each("kind", ANSWERS)
@for_each("outcome", get_args(Outcome))
def test_a_call_is_ok_exactly_when_it_was_done(kind: type[ToolResult], outcome: Outcome) -> None:
    made = kind.model_validate({**ANSWERS[kind], "outcome": outcome})
    assert made.ok is (outcome == "done")
    assert kind.model_validate_json(made.model_dump_json()) == made
    with pytest.raises(ValidationError):
        kind.model_validate({**ANSWERS[kind], "outcome": outcome, "ok": outcome != "done"})


@for_each("kind", ANSWERS)
@for_each(("ok", "outcome"), [(True, "done"), (False, "failed")])
def test_a_record_of_before_has_no_outcome_and_is_read(
    kind: type[ToolResult], ok: bool, outcome: str
) -> None:
    assert kind.model_validate({**ANSWERS[kind], "ok": ok}).outcome == outcome

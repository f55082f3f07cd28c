"""Change maps as values: their three operations and their fields."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from daiku.domain.work.patches import Change, ChangeOp, PatchJSON


def test_an_operation_is_its_name_as_text() -> None:
    """R1.94: insert, delete and replace, as JSON writes them."""
    assert [each.value for each in ChangeOp] == ["insert", "delete", "replace"]
    assert ChangeOp("insert") is ChangeOp.insert


def test_a_change_has_an_operation_a_place_and_mostly_a_text() -> None:
    """R1.95: `op`, `start`, `end`, and `text` where there is some."""
    gone = Change.model_validate({"op": "delete", "start": 2, "end": 5})
    assert (gone.op, gone.start, gone.end, gone.text) == (ChangeOp.delete, 2, 5, None)
    assert gone.model_dump(mode="json") == {"op": "delete", "start": 2, "end": 5, "text": None}
    with pytest.raises(ValidationError):
        Change.model_validate({"op": "move", "start": 2, "end": 5})


def test_a_patch_is_a_new_text_and_the_changes_that_lead_to_it() -> None:
    """R1.96: `new_text` and `change_map`."""
    patch = PatchJSON.model_validate(
        {"new_text": "a", "change_map": [{"op": "insert", "start": 0, "end": 0, "text": "a"}]}
    )
    assert [each.op for each in patch.change_map] == [ChangeOp.insert]
    assert set(patch.model_dump()) == {"new_text", "change_map"}

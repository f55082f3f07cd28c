"""Nothing is overwritten whole that the model has not read: it is shown what stands there, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.tools.files.seen import SeenTexts
from tests.agents.acting import act, app_with
from tests.cases import for_each

REAL = Path("/p/a.py")
LONG = "".join(f"def f{number}():\n    return {number}\n\n\n" for number in range(600))


def objection(seen: SeenTexts, now: str, new: str, session: str = "s") -> str:
    found = seen.check_overwrite(session, REAL, "a.py", now, new)
    return found.text if found is not None else ""


def test_a_file_that_was_not_read_is_shown_and_not_overwritten_then_it_may_be() -> None:
    seen = SeenTexts()
    told = objection(seen, "old = 1\n", "new = 1\n")
    assert "a.py is there already, and you have not read all of it; nothing was written." in told
    assert told.endswith("old = 1\n")
    assert objection(seen, "old = 1\n", "new = 1\n") == ""
    assert objection(seen, "old = 1\n", "new = 1\n", session="another") != ""


def test_of_a_long_file_its_beginning_and_its_outline_are_shown() -> None:
    told = objection(SeenTexts(), LONG, "x = 1\n")
    assert "def f0():" in told
    assert "def f300():" in told
    assert "return 300" not in told
    assert "2400 lines in all" in told.replace("2401", "2400")
    assert len(told) < len(LONG)


@for_each("now", ["", "\n", "  \n\n"])
def test_an_empty_file_may_be_filled(now: str) -> None:
    assert objection(SeenTexts(), now, "x = 1\n") == ""


def test_the_same_text_takes_nothing_away() -> None:
    assert objection(SeenTexts(), "x\n", "x\n") == ""


def test_what_was_shown_or_made_may_be_overwritten_until_somebody_else_changes_it() -> None:
    seen = SeenTexts()
    seen.note("s", REAL, "one\n")
    assert objection(seen, "one\n", "two\n") == ""
    assert "changed by somebody else" in objection(seen, "one and a half\n", "two\n")


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=12))
def test_a_file_counts_as_read_when_every_line_was_shown(total: int, pieces: list[tuple[int, int]]) -> None:
    seen, shown = SeenTexts(), set[int]()
    for first, last in pieces:
        lines = range(min(first, total), min(max(first, last), total) + 1)
        seen.note_part("s", REAL, "text\n", lines, total)
        shown |= set(lines)
    assert (objection(seen, "text\n", "new\n") == "") is (len(shown) == total)


def test_parts_of_an_older_text_do_not_count() -> None:
    seen = SeenTexts()
    seen.note_part("s", REAL, "old\n", range(1, 2), 2)
    seen.note_part("s", REAL, "new\n", range(2, 3), 2)
    assert objection(seen, "new\n", "x\n") != ""


# -- whole runs ----------------------------------------------------------------------------

BLOCK = "File: `big.py`:\n```py\nx = 1\n```"
WRITE = {"calls": [{"tool": "files/write", "args": {"path": "big.py", "content": "x = 1\n"}}]}
PATCH = {
    "calls": [
        {
            "tool": "files/patch",
            "args": {"patch": "*** Begin Patch\n*** Add File: big.py\n+x = 1\n*** End Patch\n"},
        }
    ]
}


def big(folder: Path) -> Path:
    (folder / "project").mkdir()
    path = folder / "project" / "big.py"
    path.write_text(LONG)
    return path


@pytest.mark.parametrize("line", [{"text": BLOCK}, WRITE])
async def test_a_coder_that_writes_blind_is_shown_the_file_first(
    tmp_path: Path, line: dict[str, object]
) -> None:
    path = big(tmp_path)
    app = app_with(tmp_path, line, {"text": "No change: it does more than I knew.", "when": "def f300"})
    result, state, _ = await act(app, "coder")
    assert [reason.kind for reason in result.reasons] == ["edit_not_applied"]
    assert path.read_text() == LONG
    assert state.done.files == ()


async def test_meant_so_it_is_written(tmp_path: Path) -> None:
    path = big(tmp_path)
    result, _, _ = await act(app_with(tmp_path, {"text": BLOCK}, {"text": BLOCK}), "coder")
    assert result.status == "completed"
    assert path.read_text() == "x = 1\n"


async def test_a_file_that_the_request_names_was_shown_already(tmp_path: Path) -> None:
    big(tmp_path).write_text("y = 1\n")
    app = app_with(tmp_path, {"text": BLOCK, "when": "y = 1"})
    result, state, _ = await act(app, "coder", "Change big.py.")
    assert (result.status, [f.path for f in state.done.files]) == ("completed", ["big.py"])


@pytest.mark.parametrize("agent", ["coordinator", "coder", "runner"])
async def test_reading_a_piece_is_not_reading_the_file(tmp_path: Path, agent: str) -> None:
    path = big(tmp_path)
    look = {"calls": [{"tool": "files/read", "args": {"path": "big.py", "start_line": 1, "end_line": 5}}]}
    app = app_with(tmp_path, look, WRITE, {"text": "I stop here."})
    await act(app, agent)
    assert path.read_text() == LONG

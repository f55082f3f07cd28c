"""Changes of a text whose secrets are blacked out, made in the text itself."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from daiku.edits.rules.changes.changemap import apply_map, build_change, moves_marks, patch_between, unredact
from daiku.edits.rules.matching.refusal import Refusal
from daiku.guard.rules.redact import MARK, Redactor
from tests.cases import examples

SECRET = "hunter2hunter2"
KEY = "-----BEGIN PRIVATE KEY-----\nabc\ndef\n-----END PRIVATE KEY-----"
redact = Redactor([SECRET])
LINE = st.sampled_from(
    [
        "a\n",
        "b c\n",
        f"KEY={SECRET}\n",
        f"x {SECRET} y {SECRET} z\n",
        f"{KEY}\n",
        "\r\n",
        "漢字😀\n",
        f"{SECRET}{SECRET}\n",
    ]
)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(LINE, max_size=12).map("".join), st.data())
def test_a_change_of_the_blacked_out_text_leaves_every_secret_where_it_is(
    real: str, data: st.DataObject
) -> None:
    """C1.8, X.16: what is written is the text with its secrets, changed as the model changed what it saw."""
    shown = redact(real)
    lines = shown.splitlines(keepends=True)
    new = "".join(
        data.draw(st.sampled_from([line, line.replace("b", "B"), f"new {line}", f"new\n{line}"]))
        for line in lines
    )
    patch = patch_between(shown, new).change_map
    changes = unredact(real, shown, MARK, patch)
    assert isinstance(changes, Refusal) == moves_marks(shown, MARK, patch)
    assume(not isinstance(changes, Refusal))
    assert not isinstance(changes, Refusal), changes
    made = apply_map(real, changes)
    assert isinstance(made, str)
    assert redact(made) == new
    assert made.count(SECRET) == real.count(SECRET)
    assert made.count("PRIVATE KEY") == real.count("PRIVATE KEY")


def test_a_change_that_takes_a_secret_out_or_cuts_it_is_refused() -> None:
    real = f"a {SECRET} b\n"
    shown = redact(real)
    for change in (build_change(2, 2 + len(MARK), "x"), build_change(4, 6, "x"), build_change(0, 4, "x")):
        assert isinstance(unredact(real, shown, MARK, (change,)), Refusal)
    over = build_change(0, len(shown) - 1, f"b {MARK} a")
    assert unredact(real, shown, MARK, (over,)) == (build_change(0, len(real) - 1, f"b {SECRET} a"),)

"""Commands that do nothing but edit the files that they name."""

from __future__ import annotations

from daiku.tools.shell.protecting import find_edited_words
from tests.cases import for_each

IN_PLACE = {
    "sed -i s/a/b/ x": ("s/a/b/", "x"),
    "sed -n -i '/x/d' x y": ("/x/d", "x", "y"),
    "sed -Ei --posix s/a/b/ x": ("s/a/b/", "x"),
    "sed --in-place s/a/b/ src/*.py": ("s/a/b/", "src/*.py"),
    "/usr/bin/sed -i s/a/b/ x": ("s/a/b/", "x"),
    "perl -pi -e s/a/b/ x": ("s/a/b/", "x"),
    "sed -i s/a/b/ x && cat x": ("s/a/b/", "x"),
    "grep -n a x; sed -i s/a/b/ x; sed -i s/c/d/ y": ("s/a/b/", "x", "s/c/d/", "y"),
}
OTHERS = (
    "sed s/a/b/ x", "cat x", "sed -i.bak s/a/b/ x", "perl -pi.orig -e s/a/b/ x", "sed -i s/a/b/ x > y", "sed s/a/b/ x > x",
    "sed -i s/a/b/ x && git commit -am x", "sed -i s/a/b/ x; touch y", "cd src && sed -i s/a/b/ x", "sed -i s/a/b/ $(cat list)",
    "find . -exec sed -i s/a/b/ {} +", "grep -l a . | xargs sed -i s/a/b/", "python3 -i x", "bash -c 'sed -i s/a/b/ x'", "",
)  # fmt: skip


@for_each(("command", "words"), IN_PLACE.items())
def test_the_operands_of_an_edit_in_place_are_all_that_may_change(
    command: str, words: tuple[str, ...]
) -> None:
    """A23.2"""
    assert find_edited_words(command) == words


@for_each("command", OTHERS)
def test_of_a_command_that_may_do_more_nothing_is_known(command: str) -> None:
    """A23.2"""
    assert find_edited_words(command) == ()

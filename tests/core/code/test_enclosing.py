"""The definition around a place, in several languages."""

from __future__ import annotations

from daiku.tools.files.tags import read_tags
from daiku.tools.rules.code.repomap import find_enclosing_definition
from tests.cases import for_each

PYTHON = """import os


class Shop:
    @property
    def open(
        self,
    ) -> bool:
        if self.day:

            return True
        return False

    def close(self) -> None:
        pass


X = 1
"""
TYPESCRIPT = """const a = 1;

export function add({
  left,
  right,
}: Pair): number {
  if (left) {
    return left;
  } else {
    return right;
  }
}

function other() {
  return 1;
}
"""
C_SHARP = """class Till
{
    void Count(int a)
    {
        int b = a;
    }
}
"""
RUBY = """def first
  1
end

def second
  2
end
"""


@for_each(
    ("suffix", "text", "line", "expected"),
    [
        (".py", PYTHON, 10, (4, 11)),
        (".py", PYTHON, 4, (4, 11)),
        (".py", PYTHON, 14, (13, 14)),
        (".py", PYTHON, 17, None),
        (".py", PYTHON, 0, None),
        (".ts", TYPESCRIPT, 9, (2, 11)),
        (".ts", TYPESCRIPT, 2, (2, 11)),
        (".ts", TYPESCRIPT, 12, None),
        (".ts", TYPESCRIPT, 14, (13, 15)),
        (".cs", C_SHARP, 4, (0, 6)),
        (".rb", RUBY, 5, (4, 6)),
    ],
)
def test_the_innermost_definition_is_found(
    suffix: str, text: str, line: int, expected: tuple[int, int] | None
) -> None:
    assert (
        find_enclosing_definition(text.splitlines(), line, line, read_tags(text.encode(), suffix)) == expected
    )


def test_a_selection_over_two_definitions_is_held_by_what_holds_both() -> None:
    tags = read_tags(PYTHON.encode(), ".py")
    assert find_enclosing_definition(PYTHON.splitlines(), 9, 14, tags) == (3, 14)
    assert find_enclosing_definition(PYTHON.splitlines(), 9, 17, tags) is None
    assert find_enclosing_definition([], 0, 0, tags) is None

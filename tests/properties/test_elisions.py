"""A new text that leaves code out becomes the text that was meant or is refused, whatever the old one holds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hypothesis import event, example, given
from hypothesis import strategies as st

from daiku.domain.work.patches import SearchReplace
from daiku.edits.rules.edits import apply_edits
from daiku.edits.rules.elisions import fill_text
from daiku.edits.rules.matching.indents import get_indent
from daiku.edits.rules.matching.refusal import Refusal
from daiku.edits.rules.patch import build_patch, parse_patch

MARKS = (
    "# ... existing code ...",
    "// ... rest of the function ...",
    "# 以下省略",
    "# ...",
    "// …",
    "# rest of the code unchanged",
)
COMMON = ("return x", "}", "break", "x = 1", "else:", "", "", "if x:", "end")

ALONE = re.compile(r"\s*(?:def f|call_|y)\d")
"""What the only line of its kind begins with: where such a line goes, no other could be meant."""


@dataclass(frozen=True)
class Rewriting:
    """A file, the text that is meant for it, and how a model writes that: lines that stay are left out."""

    old: str
    meant: str
    written: str


@st.composite
def files(draw: st.DrawFn) -> list[str]:
    """Lines of code as there are many: nested blocks, lines that stand alone and lines that come again and again."""
    lines: list[str] = []
    for number in range(draw(st.integers(3, 24))):
        depth = draw(st.integers(0, 2))
        text = draw(st.sampled_from((*COMMON, f"def f{number}():", f"call_{number}(x)", f"y{number} = 2")))
        lines.append("    " * depth + text if text else "")
    return lines if any(line.strip() for line in lines) else [*lines, "x = 1"]


@st.composite
def rewritings(draw: st.DrawFn) -> Rewriting:
    """A change between stretches that stay. Of these, lines are left out that have lines that stay on both sides, or
    the start or the end of the file: what goes beside an elision without a word cannot be known by anybody. Dots
    without a comment sign are not among the marks: below a head they are a body of Python that does nothing."""
    old = draw(files())
    meant: list[str] = []
    written: list[str] = []
    at, mark = 0, draw(st.sampled_from(MARKS))
    while at < len(old):
        stays = draw(st.integers(1, 8))
        stretch = old[at : at + stays]
        first, last = at == 0, at + stays >= len(old)
        at += len(stretch)
        meant += stretch
        written += _elided(draw, stretch, mark, first=first, last=last)
        if at < len(old):
            while at < len(old) and ALONE.match(old[at]) and draw(st.booleans()):
                at += 1  # a line that comes once goes
            like = draw(st.sampled_from(("added()", *old, *COMMON)))
            added = [like] * draw(st.integers(0, 2))
            meant += added
            written += added
    return Rewriting(*("".join(f"{line}\n" for line in lines) for lines in (old, meant, written)))


def _elided(draw: st.DrawFn, stretch: list[str], mark: str, *, first: bool, last: bool) -> list[str]:
    starts = [n for n in range(len(stretch)) if (stretch[n - 1].strip() if n else first)]
    start = draw(st.sampled_from(starts or [0]))
    ends = [
        n for n in range(start + 1, len(stretch) + 1) if (stretch[n].strip() if n < len(stretch) else last)
    ]
    end = draw(st.sampled_from(ends or [start]))
    if not starts:
        return stretch
    out = stretch[start:end]
    if not any(line.strip() for line in out) or not draw(st.booleans()):
        return stretch
    depth = min((get_indent(line) for line in out if line.strip()), key=len)
    return [*stretch[:start], depth + mark, *stretch[end:]]


def outcomes(case: Rewriting) -> list[tuple[str, str | Refusal]]:
    """What comes of it as a whole file, as an edit, and as a block of a reply."""
    block = f"f.py\n<<<<<<< SEARCH\n{case.old}=======\n{case.written}>>>>>>> REPLACE\n"
    patch = parse_patch(block)
    built = patch if isinstance(patch, Refusal) else build_patch(patch, {"f.py": case.old})
    return [
        ("file", fill_text(case.written, case.old)),
        ("edit", apply_edits(case.old, [SearchReplace(search=case.old, replace=case.written)])),
        (
            "block",
            built if isinstance(built, Refusal) else (built.files[0].new or "" if built.files else case.old),
        ),
    ]


@example(  # the line above the elision stands in two places, the likelier one below a line that goes
    Rewriting(
        "return x\n}\nreturn x\ndef f1():\n}\nreturn x\nend\n",
        "return x\n}\nreturn x\n}\nreturn x\nend\n",
        "return x\n}\nreturn x\n}\n# ...\nend\n",
    )
)
@example(  # a line comes between two lines, as it stands behind the first of them further down
    Rewriting(
        "y0 = 2\nx = 1\ncall_2(x)\nreturn x\nend\nx = 1\ncall_1(x)\nelse:\ndef f3():\n",
        "y0 = 2\nx = 1\ncall_1(x)\ncall_2(x)\nreturn x\nend\nx = 1\ncall_1(x)\nelse:\ndef f3():\n",
        "# ...\nx = 1\ncall_1(x)\ncall_2(x)\nreturn x\nend\nx = 1\ncall_1(x)\nelse:\n# ...\n",
    )
)
@example(  # the line below the elision stands in two places, the second is meant
    Rewriting(
        "y0 = 2\ncall_2(x)\nif x:\nend\ny1 = 2\nif x:\ny2 = 2\n",
        "y0 = 2\ncall_2(x)\nif x:\nend\ny1 = 2\nif x:\nadded()\ny2 = 2\n",
        "y0 = 2\n# ...\nif x:\nadded()\ny2 = 2\n",
    )
)
@given(rewritings())
def test_what_is_left_out_becomes_what_was_meant_or_is_refused(case: Rewriting) -> None:
    for name, result in outcomes(case):
        done = "filled in" if case.written != case.meant else "as it was"
        event(f"{name} {'refused' if isinstance(result, Refusal) else done}")
        assert isinstance(result, Refusal) or result == case.meant, name

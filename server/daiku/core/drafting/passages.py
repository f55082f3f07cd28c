"""A reference cut into passages, so that what is found can be shown and compared."""

from __future__ import annotations

from collections.abc import Iterator

from daiku.core.drafting.headings import lines_of

LONGEST = 900
"""Characters of a passage, about a paragraph or two."""


def passages(text: str) -> Iterator[tuple[int, str]]:
    """The passages of a text, each with the number of its first line: paragraphs, short ones together, long ones
    cut."""
    first, kept, size = 1, list[str](), 0
    for number, line in enumerate(lines_of(text, "markdown"), 1):
        ends = not line.text.strip() and size > LONGEST // 2
        for piece in (line.text[at : at + LONGEST] for at in range(0, max(len(line.text), 1), LONGEST)):
            if kept and (ends or size + len(piece) > LONGEST):
                if joined := "\n".join(kept).strip():
                    yield first, joined
                first, kept, size = number, [], 0
            kept.append(piece)
            size += len(piece) + 1
    if joined := "\n".join(kept).strip():
        yield first, joined

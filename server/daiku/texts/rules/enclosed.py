"""What stands between an opening and its end, such as comments; found in time by the length of the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping


def enclosed(
    text: str,
    opening: re.Pattern[str],
    kind_of: Callable[[re.Match[str]], str],
    ends: Mapping[str, re.Pattern[str]],
) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Every opening in `text` with its end, one behind the other.

    The end of a kind matches from behind the opening on; a kind without one is whole as it is. What has no end is left
    out, and no later one of its kind is looked at: it has none either, so that many of them cost no more than one.
    """
    at, endless = 0, set[str]()
    while (found := opening.search(text, at)) is not None:
        kind = kind_of(found)
        end = found if kind not in ends else None if kind in endless else ends[kind].match(text, found.end())
        if end is None:
            endless.add(kind)
            at = found.start() + 1
        else:
            yield found, end
            at = max(end.end(), found.start() + 1)

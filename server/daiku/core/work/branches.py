"""The branch of a work item: a name of ours, made from nothing that can hurt (PROTOCOL 9)."""

from __future__ import annotations

import re
import unicodedata

from daiku.domain.items.item import ItemKey

PREFIX = "daiku/"
MOST = 40


def branch_of(key: ItemKey, title: str) -> str:
    """`daiku/<number>-<slug>`; for a file `daiku/<slug of its name>`. Only small letters, digits and hyphens come from
    what strangers wrote."""
    if key.source == "files":
        return f"{PREFIX}{slug(key.name) or 'item'}"
    words = slug(title)
    return f"{PREFIX}{key.name}-{words}" if words else f"{PREFIX}{key.name}"


def slug(words: str) -> str:
    """The words as small letters and digits of ASCII, joined by hyphens."""
    plain = unicodedata.normalize("NFKD", words[:200]).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower())[:MOST].strip("-")

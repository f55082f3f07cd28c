"""Wrap untrusted text as data in a prompt, between markers that the text cannot close."""

from __future__ import annotations

import re

_OPENS = re.compile("[<\uff1c\ufe64\u2039\u27e8\u3008]")


def fence_as_data(text: str) -> str:
    """`text` between `<data>` and `</data>`; whatever in it could begin such a mark is escaped, in its
    look-alikes too. The same text gives the same words: a provider's cache depends on it."""
    return f"<data>\n{_OPENS.sub('&lt;', text)}\n</data>"

"""What the terminal says, in the person's language."""

from __future__ import annotations

import os
from collections.abc import Mapping

from daiku.texts.text import ENGLISH, fill, language_of, render


def locale_of(environ: Mapping[str, str]) -> str:
    """Return the user's locale from the usual variables, in their order of precedence."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            return language_of(value)
    return ENGLISH


def localize(text: str) -> str:
    """Translate a text of the server into the person's language."""
    return render(text, locale_of(os.environ))


def say(key: str, **values: object) -> str:
    """Return the text of `key` in the user's language."""
    args = {name: value if isinstance(value, str) else str(value) for name, value in values.items()}
    return fill(locale_of(os.environ), f"terminal.{key}", args)

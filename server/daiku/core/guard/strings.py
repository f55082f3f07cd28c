"""Redaction of JSON values: every string is redacted as it is, before it is encoded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import cast

from daiku.core.guard.token_shapes import MARK, is_service

_GAP = "\n" * 12
"""Separator between joined strings: more white space than any secret's pattern matches."""
_LONGEST_NAMED = 400
"""Characters of a value that is judged by its key: a longer one is a text, not a password."""
_NAMES = ("pass", "pwd", "secret", "token", "auth", "credential", "key", "cookie", "pat")

Redact = Callable[[str], str]


def redact_json(value: object, redact: Redact) -> object:
    """Return the decoded JSON `value` with every string and key redacted; `value` itself if nothing changed."""
    joined = _GAP.join(_collect(value))
    return value if redact(joined) == joined else _walk(value, redact)


def redact_encoded(data: str, redact: Redact) -> str:
    """Return the JSON text `data` with every string in it redacted as decoded text; `data` if nothing changed."""
    value: object = json.loads(data)
    clean = redact_json(value, redact)
    return data if clean is value else json.dumps(clean, ensure_ascii=False, separators=(",", ":"))


def _collect(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, item in cast("Mapping[str, object]", value).items():
                if isinstance(item, str) and len(item) <= _LONGEST_NAMED and _may_name_secret(key):
                    yield _pair(key, item)
                yield key
                yield from _collect(item)
        case list():
            for item in cast("Sequence[object]", value):
                yield from _collect(item)
        case _:
            pass


def _walk(value: object, redact: Redact) -> object:
    match value:
        case str():
            return redact(value)
        case dict():
            items = cast("Mapping[str, object]", value).items()
            return {redact(key): _redact_item(key, item, redact) for key, item in items}
        case list():
            return [_walk(item, redact) for item in cast("Sequence[object]", value)]
        case _:
            return value


def _redact_item(key: str, item: object, redact: Redact) -> object:
    clean = _walk(item, redact)
    if not isinstance(item, str) or clean != item or len(item) > _LONGEST_NAMED or not _may_name_secret(key):
        return clean
    pair = _pair(key, item)
    return MARK if redact(key) == key and redact(pair) != pair else item


@lru_cache(maxsize=1024)
def _may_name_secret(key: str) -> bool:
    lower = key.lower()
    return any(word in lower for word in _NAMES) or is_service(lower)


def _pair(key: str, value: str) -> str:
    """Return a key and its value as one text, as a file of settings has them."""
    return f'"{key}": {json.dumps(value, ensure_ascii=False)}'

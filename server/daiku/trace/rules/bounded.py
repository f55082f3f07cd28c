"""Truncation of JSON to a size, with marks that say how much is missing."""

from __future__ import annotations

from pydantic import JsonValue

TEXT_LIMIT = 32_768
"""Characters of one text, at most."""
WHOLE_LIMIT = 65_536
"""Characters of all texts of a value, at most; each list or object item counts as ITEM."""
ITEM = 4
"""Characters that an item of a list or object counts as."""
DEPTH = 24
"""Levels of nesting, at most."""


def truncate_json(
    value: JsonValue, text_limit: int = TEXT_LIMIT, whole_limit: int = WHOLE_LIMIT
) -> JsonValue:
    """Return `value` with long texts, lists, and objects truncated and marked: `[… 120 characters cut]`."""
    return _Truncation(text_limit, whole_limit).value(value, 0)


class _Truncation:
    """One truncation pass over a value; the remaining room shrinks."""

    __slots__ = ("_remaining", "_text_limit")

    def __init__(self, text_limit: int, whole_limit: int) -> None:
        self._text_limit = text_limit
        self._remaining = whole_limit

    def value(self, value: JsonValue, depth: int) -> JsonValue:
        match value:
            case str():
                return self._text(value)
            case list():
                return self._list(value, depth)
            case dict():
                return self._object(value, depth)
            case _:
                return value

    def _text(self, text: str) -> str:
        room = max(0, min(self._text_limit, self._remaining))
        self._remaining -= min(len(text), room) + ITEM
        return text if len(text) <= room else f"{text[:room]}[… {len(text) - room} characters cut]"

    def _list(self, items: list[JsonValue], depth: int) -> JsonValue:
        kept: list[JsonValue] = []
        for item in items:
            if self._remaining <= 0 or depth >= DEPTH:
                kept.append(f"[… {len(items) - len(kept)} items cut]")
                break
            self._remaining -= ITEM
            kept.append(self.value(item, depth + 1))
        return kept

    def _object(self, items: dict[str, JsonValue], depth: int) -> JsonValue:
        kept: dict[str, JsonValue] = {}
        for key, item in items.items():
            if self._remaining <= 0 or depth >= DEPTH:
                kept["…"] = f"[… {len(items) - len(kept)} items cut]"
                break
            name = self._text(key)
            kept[name] = self.value(item, depth + 1)
        return kept

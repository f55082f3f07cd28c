"""What can be wrong with calls that a model writes into its text, as a model and a person are told."""

from __future__ import annotations

import json

from daiku.texts.text import Text, text

CUT = text("calls.cut_off")
WITHIN = text("calls.text_between")
SOME_ITEMS = text("calls.some_items")
SOME_VALUES = text("calls.some_values")
NO_TOOL = text("calls.no_tool")
NO_JSON = text("roles.no_json")
NONE_IN_TAGS = text("calls.none_in_tags")
NONE_BEHIND_MARK = text("calls.none_behind_mark")


def bad_arguments(tool: str) -> Text:
    """The arguments of `tool` are no object."""
    return text("calls.bad_arguments", name=tool)


def without_end(parameter: str) -> Text:
    """A tag of a parameter is never closed."""
    return text("calls.without_end", name=parameter)


def no_closing_tag(tag: str) -> Text:
    """A tag around calls is never closed."""
    return text("calls.no_closing", tag=tag)


def tag_without_end(tag: str) -> Text:
    """A tag of an argument is never closed."""
    return text("calls.tag_without_end", tag=tag)


def bad_json(wrong: Exception) -> Text:
    """JSON that cannot be read, with the place where that is known."""
    if isinstance(wrong, json.JSONDecodeError):
        return text("roles.json_error", problem=wrong.msg, line=wrong.lineno, column=wrong.colno)
    return text("roles.bad_json")

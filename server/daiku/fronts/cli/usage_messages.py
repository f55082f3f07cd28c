"""Messages for command-line errors: click's own in English, translated in other languages."""

from __future__ import annotations

import os
from collections.abc import Iterable

import click
from click import exceptions

from daiku.texts.terminal import locale_of
from daiku.texts.text import ENGLISH, Text, joined, render, text


def usage_message(error: click.ClickException) -> str:
    """Return the message for a usage error, in the user's language."""
    language = locale_of(os.environ)
    if language != ENGLISH:
        return render(_translated_message(error), language)
    message = error.format_message()
    return message if message.endswith((".", "?", "!", "?)")) else f"{message}."


def _translated_message(error: click.ClickException) -> Text:
    match error:
        case exceptions.NoSuchCommand(command_name=name, possibilities=near):
            return joined("sentences", [text("misuse.no_command", name=name), _nearest(near)])
        case exceptions.NoSuchOption(option_name=name, possibilities=near):
            return joined("sentences", [text("misuse.no_option", name=name), _nearest(near)])
        case exceptions.MissingParameter():
            return text("misuse.missing", name=_name(error))
        case exceptions.BadOptionUsage(option_name=name):
            return text("misuse.option_usage", name=name)
        case exceptions.BadParameter(param=click.Parameter(type=click.Choice(choices=choices))):
            listed = ", ".join(str(choice) for choice in choices)
            return text("misuse.not_one_of", name=_name(error), listed=listed)
        case exceptions.BadParameter():
            return text("misuse.bad_value", name=_name(error), what=error.message)
        case _:
            return text("misuse.other", what=error.format_message())


def _nearest(names: Iterable[str] | None) -> str:
    near = ", ".join(sorted(names or ()))
    return text("misuse.nearest", near=near) if near else ""


def _name(error: exceptions.BadParameter) -> str:
    if error.param is None:
        return text("misuse.a_value")
    return error.param.opts[0] if isinstance(error.param, click.Option) else error.param.human_readable_name

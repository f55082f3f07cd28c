"""Error messages for a wrong command line: click's own in English, translations of them in other languages."""

from __future__ import annotations

import os
from collections.abc import Iterable

import click
from click import exceptions

from daiku.texts.catalogue import ENGLISH
from daiku.texts.terminal import locale_of
from daiku.texts.text import Text, joined, render, text


def usage_message(wrong: click.ClickException) -> str:
    """Return the message for a usage error, in the person's language."""
    language = locale_of(os.environ)
    if language != ENGLISH:
        return render(_said(wrong), language)
    message = wrong.format_message()
    return message if message.endswith((".", "?", "!", "?)")) else f"{message}."


def _said(wrong: click.ClickException) -> Text:
    match wrong:
        case exceptions.NoSuchCommand(command_name=name, possibilities=near):
            return joined("sentences", [text("misuse.no_command", name=name), _nearest(near)])
        case exceptions.NoSuchOption(option_name=name, possibilities=near):
            return joined("sentences", [text("misuse.no_option", name=name), _nearest(near)])
        case exceptions.MissingParameter():
            return text("misuse.missing", name=_name(wrong))
        case exceptions.BadOptionUsage(option_name=name):
            return text("misuse.option_usage", name=name)
        case exceptions.BadParameter(param=click.Parameter(type=click.Choice(choices=choices))):
            listed = ", ".join(str(choice) for choice in choices)
            return text("misuse.not_one_of", name=_name(wrong), listed=listed)
        case exceptions.BadParameter():
            return text("misuse.bad_value", name=_name(wrong), what=wrong.message)
        case _:
            return text("misuse.other", what=wrong.format_message())


def _nearest(names: Iterable[str] | None) -> str:
    near = ", ".join(sorted(names or ()))
    return text("misuse.nearest", near=near) if near else ""


def _name(wrong: exceptions.BadParameter) -> str:
    if wrong.param is None:
        return text("misuse.a_value")
    return wrong.param.opts[0] if isinstance(wrong.param, click.Option) else wrong.param.human_readable_name

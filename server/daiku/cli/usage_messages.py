"""Error messages for a wrong command line: click's own in English, translations of them in Japanese."""

from __future__ import annotations

import os
from collections.abc import Iterable

import click
from click import exceptions

from daiku.texts.terminal import locale_of


def usage_message(wrong: click.ClickException) -> str:
    """Return the message for a usage error, in the person's language."""
    return wrong.format_message() if locale_of(os.environ) == "en" else _japanese(wrong)


def _japanese(wrong: click.ClickException) -> str:
    match wrong:
        case exceptions.NoSuchCommand(command_name=name, possibilities=near):
            return f"{name} というコマンドはありません。{_nearest(near)}"
        case exceptions.NoSuchOption(option_name=name, possibilities=near):
            return f"{name} というオプションはありません。{_nearest(near)}"
        case exceptions.MissingParameter():
            return f"{_name(wrong)} を指定してください。"
        case exceptions.BadOptionUsage(option_name=name):
            return f"オプション {name} の使い方が違います。値の有無と数を確かめてください。"
        case exceptions.BadParameter(param=click.Parameter(type=click.Choice(choices=choices))):
            listed = ", ".join(str(choice) for choice in choices)
            return f"{_name(wrong)} に指定できるのは次のいずれかです: {listed}。"
        case exceptions.BadParameter():
            return f"{_name(wrong)} の値が正しくありません。"
        case _:
            return f"コマンドの書き方が違います: {wrong.format_message()}"


def _nearest(names: Iterable[str] | None) -> str:
    near = ", ".join(sorted(names or ()))
    return f"近いもの: {near}。" if near else ""


def _name(wrong: exceptions.BadParameter) -> str:
    if wrong.param is None:
        return "値"
    return wrong.param.opts[0] if isinstance(wrong.param, click.Option) else wrong.param.human_readable_name

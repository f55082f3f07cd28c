"""A change of the playbook in the terminal: accepted, edited, rejected or left by one key."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

import click

from daiku.cli.ask import keyboard
from daiku.cli.display.term import Terminal
from daiku.dataclass import dataclass
from daiku.texts.terminal import say

Key: TypeAlias = Literal["accept", "reject", "skip", "quit", "edit", "evidence"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said to a change, and the text that they gave it."""

    key: Key
    content: str | None = None


async def ask_about(people: Terminal, content: str, *, evidence: bool) -> Answer:
    """One key. The end of input and Escape leave this change and all that follow."""
    keys = [
        say("playbook.key.accept"),
        say("playbook.key.edit") if content else "",
        say("playbook.key.reject"),
        say("playbook.key.evidence") if evidence else "",
        say("playbook.key.skip"),
        say("playbook.key.quit"),
    ]
    with keyboard.key_by_key():
        people.write(people.paint("  ".join(key for key in keys if key), "bold") + " ")
        key = await _key(can_edit=bool(content), evidence=evidence)
    people.write("\n")
    return Answer(key, await _edited(people, content)) if key == "edit" else Answer(key)


async def _key(*, can_edit: bool, evidence: bool) -> Key:
    while True:
        match await keyboard.read_key():
            case "y" | "a":
                return "accept"
            case "n" | "r":
                return "reject"
            case "e" if can_edit:
                return "edit"
            case "o" if evidence:
                return "evidence"
            case "s" | " ":
                return "skip"
            case "q" | "" | "\x04" | "\x1b":
                return "quit"
            case _:
                continue


async def _edited(people: Terminal, content: str) -> str | None:
    """The text as the person wants it: from the editor that they have set, else one line; None where it stays."""
    if os.environ.get("VISUAL") or os.environ.get("EDITOR"):
        try:
            said = click.edit(content, extension=".md", require_save=False)
        except click.ClickException as wrong:
            people.write(people.paint(wrong.format_message(), "red") + "\n")
            return None
        said = (said or "").strip("\n")
    else:
        people.write(people.paint(say("playbook.new_text"), "bold") + " ")
        said = ((await keyboard.read_line()) or "").strip()
    return said if said.strip() and said != content else None

"""Environment facts in the model's messages: all of them once, then only changes."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.domain.messages import UserMessage
from daiku.domain.runs import EnvironmentFact, Mode
from daiku.texts.rules.visible import show_hidden

MODE, EDITOR, FOLDER, GIT, TOOLS = "Mode", "Editor", "Folder", "Git", "Tools"
"""Names of facts that other modules use."""
LONGEST_NAME = 120
"""Characters of a name from the project (branch, file), at most."""


def changed_facts(
    earlier: Sequence[EnvironmentFact], current: Sequence[EnvironmentFact]
) -> tuple[EnvironmentFact, ...]:
    """Return the `current` facts that differ from the `earlier` ones."""
    earlier_texts = {fact.name: fact.text for fact in earlier}
    return tuple(fact for fact in current if earlier_texts.get(fact.name) != fact.text)


def render_environment(facts: Sequence[EnvironmentFact], *, changed: bool = False) -> str:
    """Return the facts as the model reads them, one per line; empty without facts."""
    if not facts:
        return ""
    head = ["Changed since you were last told:"] if changed else []
    return "\n".join(["<environment>", *head, *(f"{f.name}: {f.text}" for f in facts), "</environment>"])


def with_environment(
    message: UserMessage, facts: Sequence[EnvironmentFact], earlier: Sequence[EnvironmentFact] = ()
) -> UserMessage:
    """Return the message with a block of facts first. `earlier`: facts that the model already has."""
    return with_preface(message, render_environment(facts, changed=bool(earlier)))


def with_preface(message: UserMessage, block: str) -> UserMessage:
    """Return the message with a block of Daiku's before its text; unchanged if the block is empty."""
    if not block:
        return message
    text, size = f"{block}\n\n{message.text}", len(block) + 2 + message.preface
    return message.model_copy(update={"text": text, "preface": size})


def nested_facts(
    facts: Sequence[EnvironmentFact], mode: Mode, folder: str = ""
) -> tuple[EnvironmentFact, ...]:
    """Return the facts for a nested run, without editor. `folder`: the copy it works in."""
    changes = {MODE: describe_stage_mode(mode)}
    changes |= {FOLDER: plain_name(folder)} if folder else {}
    omitted = (EDITOR, TOOLS, *((MODE,) if mode == "act" else ()), *((GIT,) if folder else ()))
    facts_left = (fact for fact in facts if fact.name not in omitted)
    return tuple(fact.model_copy(update={"text": changes.get(fact.name, fact.text)}) for fact in facts_left)


def describe_stage_mode(mode: Mode) -> str:
    """Return what the mode means for an agent that does one part of the work."""
    if mode == "act":
        return "act. Files may be changed and commands run, as far as your tools do that."
    return f"{mode}. You only read: changes of files and commands are refused."


def plain_name(name: str) -> str:
    """Return a name from the project as short, harmless data: no hidden characters, line ends, or tags."""
    escaped = show_hidden(name).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    escaped = escaped.replace("<", "\\u003c").replace("`", "\\u0060")
    return escaped if len(escaped) <= LONGEST_NAME else escaped[: LONGEST_NAME - 1] + "…"

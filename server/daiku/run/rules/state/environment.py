"""What holds around a run as the model is told it: all of it once, and later what has changed."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.domain.messages import UserMessage
from daiku.domain.runs import EnvironmentFact, Mode
from daiku.texts.rules.visible import show_hidden

MODE, EDITOR, FOLDER, GIT, TOOLS = "Mode", "Editor", "Folder", "Git", "Tools"
"""Names of facts that others than their makers look at."""
LONGEST_NAME = 120
"""Characters of a name that comes from the project: a branch, a file."""


def changed_facts(
    told: Sequence[EnvironmentFact], now: Sequence[EnvironmentFact]
) -> tuple[EnvironmentFact, ...]:
    """Those of `now` that differ from what was `told`."""
    known = {fact.name: fact.text for fact in told}
    return tuple(fact for fact in now if known.get(fact.name) != fact.text)


def render_environment(facts: Sequence[EnvironmentFact], *, changed: bool = False) -> str:
    """The facts as the model reads them, one line each; empty where there are none."""
    if not facts:
        return ""
    head = ["Changed since you were last told:"] if changed else []
    return "\n".join(["<environment>", *head, *(f"{f.name}: {f.text}" for f in facts), "</environment>"])


def with_environment(
    message: UserMessage, facts: Sequence[EnvironmentFact], told: Sequence[EnvironmentFact] = ()
) -> UserMessage:
    """The message with the facts before its words; `told` are those that the model knows already."""
    return with_preface(message, render_environment(facts, changed=bool(told)))


def with_preface(message: UserMessage, block: str) -> UserMessage:
    """Return the message with a block of Daiku's own before everything else in it; itself if the block is empty."""
    if not block:
        return message
    text, size = f"{block}\n\n{message.text}", len(block) + 2 + message.preface
    return message.model_copy(update={"text": text, "preface": size})


def nested_facts(
    facts: Sequence[EnvironmentFact], mode: Mode, folder: str = ""
) -> tuple[EnvironmentFact, ...]:
    """Return the facts for a nested run: no editor, of the mode what it forbids. `folder`: the copy it works in."""
    news = {MODE: stage_mode(mode)}
    news |= {FOLDER: plain_name(folder)} if folder else {}
    left_out = (EDITOR, TOOLS, *((MODE,) if mode == "act" else ()), *((GIT,) if folder else ()))
    kept = (fact for fact in facts if fact.name not in left_out)
    return tuple(fact.model_copy(update={"text": news.get(fact.name, fact.text)}) for fact in kept)


def stage_mode(mode: Mode) -> str:
    """What the mode means to an agent that does one part of the work."""
    if mode == "act":
        return "act. Files may be changed and commands run, as far as your tools do that."
    return f"{mode}. You only read: changes of files and commands are refused."


def plain_name(name: str) -> str:
    """A name out of the project as one short piece of data: nothing hidden, no line ends, no tags."""
    shown = show_hidden(name).replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    shown = shown.replace("<", "\\u003c").replace("`", "\\u0060")
    return shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…"

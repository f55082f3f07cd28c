"""Why a text waits for a person even where learning is automatic."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from daiku.core.commands.bash import read_script
from daiku.core.commands.dangers import dangers
from daiku.core.commands.judge import LOOKING, judge
from daiku.core.guard.redact import MARK, Redactor
from daiku.core.guardrails.forms import searched_forms, without_hidden
from daiku.core.playbook.doubts.copied import Shown, copies, copies_command, copies_in_command, copies_program
from daiku.core.playbook.doubts.known_commands import is_well_known
from daiku.core.playbook.doubts.what_runs import runs_a_pattern
from daiku.core.playbook.doubts.words import WORDS
from daiku.core.playbook.lessons.proposal import Proposal, code_spans
from daiku.core.text.patterns import lazy
from daiku.core.text.visible import drop_hidden
from daiku.core.work.hidden import strip_hidden
from daiku.dataclass import replace
from daiku.domain.playbook import Doubt

LONGEST = 400
"""Characters of a lesson: what is longer is a document, in which much can stand."""
LOOKED_AT = 2000
"""Characters that are looked at: what is longer waits whatever it says."""
ORDER: tuple[Doubt, ...] = (
    "untrusted", "tainted", "copied", "hidden", "address", "secret", "approval", "instruction", "long", "lines",
    "rejected",
)  # fmt: skip
_SPACED = lazy(r"(?:(?<!\w)\w[\s._*/|-]{1,3}){5,}\w(?!\w)")
"""A word whose letters stand apart: people read it, patterns do not."""
_ENCODED = lazy(r"&#?\w+;|\\[ux][0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|\\N\{")
"""Characters that are written so that only a program reads them."""
_WORD = lazy(r"[^\W\d_]{2,}")
_by_shape = Redactor(())


def doubts_of(
    text: str,
    shown: Iterable[Shown] = (),
    *,
    commands: Iterable[str] = (),
    said: Sequence[Shown] = (),
    tainted: bool = False,
    trusted: bool = True,
) -> tuple[Doubt, ...]:
    """Everything that speaks against making `text` active without a person. `shown`: what the runs were shown before it
    was written. `commands`: command lines in it, besides those between backquotes; `said`: commands that were
    called before it. `tainted`: a run that it comes from
    read strangers' words; `trusted`: the person trusts the workspace."""
    known = list(shown)
    found: set[Doubt] = set()
    if len(text) > LONGEST:
        found.add("long")
    if "\n" in text.strip() or "\r" in text.strip():
        found.add("lines")
    text = text[:LOOKED_AT]
    spans = code_spans(text)
    if not trusted:
        found.add("untrusted")
    if tainted:
        found.add("tainted")
    if copies(text, known) or any(_is_copied(each, known, said) for each in (*commands, *spans)):
        found.add("copied")
    if _hides(text):
        found.add("hidden")
    if MARK in text or _by_shape(text) != text:
        found.add("secret")
    for form in searched_forms(text):
        found.update(doubt for doubt, pattern in WORDS if pattern.search(form))
    for command in commands:
        found.update(_doubts_of_command(command, whole=True))
    for span in spans:
        found.update(_doubts_of_command(span, whole=False))
    return tuple(doubt for doubt in ORDER if doubt in found)


def doubted(
    proposal: Proposal, shown: Sequence[Shown], said: Sequence[Shown] = (), *, tainted: bool, trusted: bool
) -> Proposal:
    """The proposal with its doubts. Each part of it is held against what was shown before it was said; a text that has
    no parts, such as a model's, against all. `said`: the commands that the runs called."""
    found = set(proposal.doubts)
    for part in proposal.parts:
        before = [each for each in shown if each.seq < part.seq]
        called = [each for each in said if each.seq < part.seq]
        commands = (part.text,) if part.command else ()
        found.update(doubts_of("" if part.command else part.text, before, commands=commands, said=called))
    everything = () if proposal.parts else shown
    if copies_program(proposal.content, everything):
        found.add("copied")
    texts = (proposal.content, *(proposal.keywords), proposal.section)
    for text in texts:
        found.update(doubts_of(text, everything, tainted=tainted, trusted=trusted))
    return replace(proposal, doubts=tuple(doubt for doubt in ORDER if doubt in found))


def doubts_of_all(texts: Iterable[str], *, trusted: bool = True) -> tuple[Doubt, ...]:
    """What speaks against any of `texts`, which make up one lesson and come from no run."""
    found = {doubt for each in texts for doubt in doubts_of(each, trusted=trusted)}
    return tuple(doubt for doubt in ORDER if doubt in found)


def _is_copied(command: str, shown: Sequence[Shown], said: Sequence[Shown]) -> bool:
    return copies_command(command, shown, said=said) or copies_in_command(command, shown, said=said)


def _hides(text: str) -> bool:
    plain = drop_hidden(text)
    return (
        plain != text
        or without_hidden(text) != unicodedata.normalize("NFKC", text)
        or strip_hidden(text).hidden
        or _SPACED.search(text) is not None
        or _ENCODED.search(text) is not None
        or any(_is_foreign(word) for word in _WORD.findall(text))
    )


def _is_foreign(word: str) -> bool:
    """Whether a word is of a script that the patterns here do not read, or mixes scripts so that it looks like another."""
    return any(_script(char) == "other" for char in word)


def _script(char: str) -> str:
    if char.isascii():
        return "latin"
    name = unicodedata.name(char, "")
    ours = (
        "CJK",
        "HIRAGANA",
        "KATAKANA",
        "FULLWIDTH",
        "HALFWIDTH KATAKANA",
        "LATIN SMALL LETTER",
        "LATIN CAPITAL LETTER",
        "IDEOGRAPHIC",
    )
    return "known" if name.startswith((*ours, "KATAKANA-HIRAGANA")) else "other"


def _doubts_of_command(command: str, *, whole: bool) -> Iterator[Doubt]:
    """What is to be feared of a command. `whole`: it certainly is one, so that what cannot be read counts too."""
    if is_well_known(command):
        return
    seen = judge(command, LOOKING)
    if seen.secret:
        yield "secret"
    script = read_script(command)
    unread = whole and (bool(script.doubts) or any(map(runs_a_pattern, script.commands)))
    if seen.answer == "deny" or seen.protected or seen.network or dangers(script.commands) or unread:
        yield "approval"

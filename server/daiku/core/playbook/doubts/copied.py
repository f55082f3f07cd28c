"""Whether a text copies what a tool, a file or a page showed: eight words of it, or a command that stands there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from pydantic import JsonValue

from daiku.core.commands.bash import SimpleCommand, read_script
from daiku.core.commands.wrappers import inner_commands, program_name
from daiku.core.guardrails.forms import searched_forms
from daiku.core.playbook.doubts.known_commands import is_common_word, is_known_program, is_well_known
from daiku.core.playbook.doubts.names import Names, names_in, parts_of, without_numbers
from daiku.core.playbook.doubts.what_runs import names_run, values_given
from daiku.core.state.state import PERSON
from daiku.core.text.patterns import lazy
from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    HandoffEnd,
    InputAsked,
    Notice,
    PlanEvent,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.work.handovers import Brief
from daiku.domain.work.plans import Plan

WORD, SIGN = 3, 2
"""What a word counts, and a sign of Japanese or Chinese."""
COPIED = 8 * WORD
"""So much of one text is a copy: eight words, or twelve signs."""
WINDOW = 4 * WORD
"""So much in a row counts as taken over, and a whole text of so much that stands in another is a copy."""
LEAST_PART, BY_CHANCE = 3, 1
"""Letters of a part of a name that says something, and so many parts may be shown by chance."""
_SIGNS = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_TOKENS = lazy(rf"[{_SIGNS}]|(?:(?![{_SIGNS}])\w)+")
_IS_SIGN = lazy(f"[{_SIGNS}]")
_NOT_PLAIN = lazy(r"[^\x00-\x7f]+")
_NAME = r"[A-Za-z0-9./@+_-]{2,}"
_CALLS = lazy(
    r"\b(?:run|execut|call|invok|launch|install|start|trigger)\w*\s+(?:the\s+|a\s+|an\s+|our\s+|its\s+)?(?P<name>"
    + _NAME
    + r")|(?P<called>"
    + _NAME
    + r")\s*(?:コマンド|スクリプト)?\s*[をで]\s*(?:実行|起動|呼|走ら|使|用い)",
    re.IGNORECASE,
)
_NO_PROGRAMS = frozenset(
    ["all", "any", "app", "build", "builds", "check", "checks", "code", "command", "commands", "database", "each", "every",
     "everything", "formatter", "it", "lint", "linter", "linters", "migrations", "only", "program", "script", "scripts", "server",
     "service", "suite", "test", "tests", "that", "them", "this", "unit", "with"]
)  # fmt: skip
"""What stands behind `run` without being the name of a program."""
_OWN = frozenset({"plan", "todo", "tools", "user"})
"""Tools whose results hold words of the person's, the model's or our own."""
_JOIN = "\x1f"


class Shown:
    """A text that a run was shown, made ready for comparing: case, marks and hidden characters do not matter. `seq` is
    the number of the chunk that showed it."""

    def __init__(self, text: str, seq: int = 0) -> None:
        self.seq = seq
        self._folded = _folded(text)
        self._words: str | None = None
        self._names: Names | None = None

    def names(self, row: Sequence[str]) -> bool:
        """Whether these words, which are a name, stand there as they are or joined in another way."""
        if self.holds(row):
            return True
        if self._names is None:
            self._names = names_in(self._folded)
        return self._names.holds("".join(row))

    def holds(self, row: Sequence[str]) -> bool:
        """Whether these words stand there one after the other. Most texts lack one of them, and are not taken apart."""
        if not all(word in self._folded for word in row):
            return False
        if self._words is None:
            self._words = _joined(_TOKENS.findall(self._folded))
        return _joined(row) in self._words


def shown_in(chunks: Iterable[Chunk]) -> list[Shown]:
    """What the runs in `chunks` were shown: by tools, files, pages, rules of folders, servers, the request's context."""
    found: list[Shown] = []
    plans: set[str] = set()
    for chunk in chunks:
        texts = [*_texts(chunk), *_of_plan(chunk, plans)]
        found += [Shown(each, chunk.seq) for each in dict.fromkeys(texts) if each]
    return found


def _of_plan(chunk: Chunk, known: set[str]) -> Iterator[str]:
    """What a plan says that nobody made in this session: it was brought from a file, or from another session. `known`: the
    plans so far."""
    match chunk.event:
        case PlanEvent(plan=plan):
            new, brought = plan.plan_id not in known, chunk.agent == PERSON
            known.add(plan.plan_id)
        case RunStarted(brief=Brief(plan=Plan() as plan)):
            new, brought = plan.plan_id not in known, chunk.parent is None
        case _:
            return
    if new and brought:
        yield from _strings(plan.model_dump(mode="json"))


def commands_called(chunks: Iterable[Chunk]) -> list[Shown]:
    """The commands that the runs in `chunks` called."""
    return [
        Shown(str(chunk.event.args.get("command", "")), chunk.seq)
        for chunk in chunks
        if isinstance(chunk.event, ToolCallEvent) and chunk.event.tool == "shell/run"
    ]


def is_tainted(chunks: Iterable[Chunk]) -> bool:
    """Whether a run in `chunks` read what is known to come from outside: the web, MCP servers, issues. Words in a picture
    are nobody's that could be compared, and a server that a person let start describes its tools to the model."""
    asked: set[str] = set()
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(kind="mcp", from_server=True, approval_id=approval):
                asked.add(approval)
            case ApprovalGiven(approval_id=approval, decision="allow_once" | "allow_always") if (
                approval in asked
            ):
                return True
            case RunStarted(tainted=True) | HandoffEnd(tainted=True) | ToolResponse(untrusted=True):
                return True
            case ToolResponse(images=images) | RunStarted(images=images) if images:
                return True
            case _:
                pass
    return False


def was_shown_anything(chunks: Iterable[Chunk]) -> bool:
    """Whether a run in `chunks` read anything at all that others wrote: files, rules of folders, what came along with a
    request and the output of commands are strangers' words too, and what a model says after it may repeat them in words of
    its own."""
    return any(_shows_others_words(chunk) for chunk in chunks)


def _shows_others_words(chunk: Chunk) -> bool:
    match chunk.event:
        case ToolResponse(tool=tool):
            return tool.partition("/")[0] not in _OWN
        case RunStarted(context=context, recalled=recalled):
            return bool(context or recalled)
        case Notice(rules=rules):
            return bool(rules)
        case InputAsked(from_server=from_server):
            return from_server
        case _:
            return False


def copies(text: str, shown: Iterable[Shown]) -> bool:
    """Whether `text` has eight words (twelve signs) of one of `shown`, in rows of at least four (six). A shorter text is
    a copy where the whole of it stands there."""
    tokens = words_of(text)
    weights = [_weight(token) for token in tokens]
    if sum(weights) < WINDOW:
        return False
    windows = list(_windows(weights))
    needed = min(COPIED, sum(weights))
    for other in shown:
        taken: set[int] = set()
        for start, end in windows:
            if other.holds(tokens[start:end]):
                taken.update(range(start, end))
        if sum(weights[at] for at in taken) >= needed:
            return True
    return False


def copies_command(command: str, shown: Sequence[Shown], *, said: Sequence[Shown] = ()) -> bool:
    """Whether `command`, or a command in it, stands in one of `shown`, or its program does where nobody knows that
    program. A well-known form, such as that of a test runner, is nobody's invention. `said`: commands that were called
    before: what stood in one of them before it was shown, such as the program's own name in its output, is no copy."""
    if is_well_known(command):
        return False
    pieces = [words_of(command), *_pieces(read_script(command).commands, said)]
    return any(
        other.names(piece) and not _was_said(piece, other, said)
        for piece in pieces
        if piece
        for other in shown
    ) or any(_is_put_together(name, shown, said) for name in _names_of(command))


def copies_in_command(command: str, shown: Iterable[Shown], *, said: Sequence[Shown] = ()) -> bool:
    """Whether eight words of one of `shown` stand in `command`: in a message that it is given, such as that of a commit."""
    row = words_of(command)
    return any(copies(command, [other]) and not _was_said(row, other, said) for other in shown)


def _was_said(row: Sequence[str], other: Shown, said: Sequence[Shown]) -> bool:
    """Whether `row` stood in a command that was called before `other` was shown."""
    return any(each.seq < other.seq and each.names(row) for each in said)


def _is_put_together(name: str, shown: Sequence[Shown], said: Sequence[Shown]) -> bool:
    """Whether each part of `name` that says something was shown, be it in different texts: two such parts at least."""
    parts = [
        each for each in dict.fromkeys(parts_of(name)) if len(each) >= LEAST_PART and not is_common_word(each)
    ]
    return len(parts) > BY_CHANCE and all(
        any(other.holds([part]) and not _was_said([part], other, said) for other in shown) for part in parts
    )


def copies_program(text: str, shown: Sequence[Shown]) -> bool:
    """Whether `text` wants a program run, in plain words, that nobody knows and that stands in one of `shown`."""
    names = {found["name"] or found["called"] for found in _CALLS.finditer(text)} - _NO_PROGRAMS
    rows = [words_of(name) for name in names if not is_known_program(name)]
    return any(other.names(row) for row in rows if row for other in shown)


def words_of(text: str) -> list[str]:
    """The words of `text` as they are compared; signs of Japanese and Chinese one by one."""
    return _TOKENS.findall(_folded(text))


def _pieces(commands: Sequence[SimpleCommand], said: Sequence[Shown]) -> Iterator[list[str]]:
    for simple, wraps in _every(commands):
        yield from (words_of(value) for value in values_given(simple, wraps=wraps))
        if not _is_looked_at(simple):
            continue
        if len(simple.words) > 1:
            yield words_of(" ".join(simple.texts))
        yield from (words_of(name) for name in names_run(simple))
        if any(
            each.holds(words_of(simple.texts[0])) for each in said
        ):  # its name is no news, what it is given may be
            yield from (words_of(word) for word in simple.texts[1:] if not word.startswith("-"))


def _names_of(command: str) -> Iterator[str]:
    """The names of what `command` runs that nobody knows."""
    for simple, _ in _every(read_script(command).commands):
        if _is_looked_at(simple):
            yield from names_run(simple)


def _is_looked_at(simple: SimpleCommand) -> bool:
    return (
        bool(simple.words)
        and program_name(simple.words) not in ("", "cd")
        and not is_well_known(" ".join(simple.texts))
    )


def _every(commands: Sequence[SimpleCommand]) -> Iterator[tuple[SimpleCommand, bool]]:
    """The commands, those that they run in turn, and of each whether it runs another one."""
    pending = list(commands)
    for _ in range(100):
        if not pending:
            return
        simple = pending.pop()
        inner, texts = inner_commands(simple)
        pending += [*inner, *(each for text in texts for each in read_script(text).commands)]
        yield simple, bool(inner)


def _texts(chunk: Chunk) -> Iterator[str]:
    match chunk.event:
        case ToolResponse(result=result, data=data):
            yield str(result)
            yield without_numbers(str(result))
            yield from _strings(data)
        case Notice(rules=rules, environment=facts):
            yield from (each.text for each in rules)
            yield from (each.text for each in facts)
        case InputAsked(from_server=True, question=question, choices=choices):
            yield from map(str, (question, *choices))
        case RunStarted() as start:
            yield from (item.text for item in start.context if item.text is not None)
            yield from (each.text for each in (*start.recalled, *start.environment))
            if start.tainted:
                yield from (start.prompt, start.told)
        case _:
            pass


def _strings(value: JsonValue) -> Iterator[str]:
    pending: list[JsonValue] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            pending += item.values()


def _folded(text: str) -> str:
    """`text` in small letters, without what hides or looks like something else; most of a text is plain anyway."""
    return _NOT_PLAIN.sub(lambda found: _folded_piece(found[0]), text).casefold()


@lru_cache(maxsize=4096)
def _folded_piece(piece: str) -> str:
    return searched_forms(piece)[-1]


def _joined(tokens: Sequence[str]) -> str:
    return f"{_JOIN}{_JOIN.join(tokens)}{_JOIN}" if tokens else ""


def _weight(token: str) -> int:
    return SIGN if _IS_SIGN.match(token) else WORD


def _windows(weights: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The shortest rows of tokens, from each one on, that weigh as much as WINDOW."""
    for start in range(len(weights)):
        total = 0
        for end in range(start, len(weights)):
            total += weights[end]
            if total >= WINDOW:
                yield start, end + 1
                break

"""JSON out of a model's reply: four strategies in order, then repair, each with validation after it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json

from daiku.dataclass import dataclass
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, joined, text

ATTEMPTS = 5
"""Replies in all, where each is wrong in another way than the one before (R0.97)."""
SAME = 3
"""Replies that are wrong in the same way: then another one would be too."""


def should_give_up(problems: Sequence[str]) -> bool:
    """Return True if a model whose replies had these problems is not asked again."""
    same = len(problems) >= SAME and len(set(problems[-SAME:])) == 1
    return same or len(problems) >= ATTEMPTS


T = TypeVar("T")
Check = Callable[[JsonValue], T]
"""Makes the typed value of parsed JSON. Raises ValueError (pydantic's included) to say what is wrong."""

SEVERAL = text("roles.several_json")
MAX_SHOWN = 6
"""Problems told to the model at once."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A reply that could not be parsed; `problem` is sent to the model. `words_only`: it is only plain text."""

    problem: Text
    words_only: bool = False


def read_json(reply: str, check: Check[T], *, cut: bool = False) -> T | Unreadable:
    """Return the value in `reply` that `check` accepts (R0.88–R0.95, C0.5, C0.7, C0.8).

    Tried in order: the whole reply, fenced blocks, balanced braces, lines, and a repair of almost-JSON. Several
    different ones are an error. `cut`: the reply hit a length limit, so nothing is repaired.
    """
    rejected = unparsed = Text("")
    for texts in _candidates(reply):
        fitting: list[tuple[JsonValue, T]] = []
        for candidate in texts:
            try:
                value = _loads(candidate)
            except ValueError as wrong:
                if candidate[:1] in ("{", "["):  # what is wrong with prose helps nobody
                    unparsed = unparsed or json_problem(wrong)
                continue
            try:
                fitting.append((value, check(value)))
            except ValueError as wrong:
                rejected = rejected or describe_error(wrong)
        if fitting:
            return _only(fitting)
    values, broken = _scan_values(reply)
    more = (_lines(reply, broken), () if cut else _repaired_parts(reply))
    for some in (values, *more):
        fitting = []
        for value in some:
            try:
                fitting.append((value, check(value)))
            except ValueError as wrong:
                rejected = rejected or describe_error(wrong)
            if fitting and some is not values:
                break
        if fitting:
            return _only(fitting)
    if rejected:
        return Unreadable(rejected)
    if not any(bracket in reply for bracket in "{["):
        return Unreadable(text("roles.no_json"))
    if cut:
        return Unreadable(text("roles.json_cut_off", problem=unparsed))
    return Unreadable(unparsed or text("roles.bad_json"))


def _only(fitting: list[tuple[JsonValue, T]]) -> T | Unreadable:
    """The one value that fits. Which of several is meant, or in what order, nobody but the model knows."""
    first, found = fitting[0]
    return found if all(value == first for value, _ in fitting) else Unreadable(SEVERAL)


def json_values(reply: str) -> tuple[JsonValue, ...]:
    """Every outermost JSON value that stands whole in `reply`, in order."""
    return tuple(_scan_values(reply)[0])


def repair_json(text: str) -> JsonValue:
    """Almost-JSON read as what was probably meant: quotes, commas, comments, brackets. "" for nothing."""
    import json_repair  # 30 ms that only a reply nobody can read has to pay

    value: JsonValue = json_repair.loads(text)  # pyright: ignore[reportAssignmentType]  # no schema, no logging: JSON
    return without_lone_surrogates(value)


def repair_whole_json(text: str) -> JsonValue | None:
    """Return the JSON object or array in `text`, repaired if needed; None if it may be cut off."""
    if not _balanced(text):
        return None
    try:
        value = repair_json(text)
    except (RecursionError, ValueError):
        return None
    return value if isinstance(value, dict | list) else None


def partial_json(text: str) -> JsonValue | None:
    """Return the value of incomplete JSON as far as it has arrived; None if it cannot be parsed yet.

    An unfinished string counts as far as it came; an unfinished name, number or word does not.
    """
    try:
        value: JsonValue = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return None
    return value


def describe_error(wrong: ValueError) -> Text:
    """The precise problem in one line: which field, what is wrong with it."""
    if not isinstance(wrong, ValidationError):
        return error_text(wrong)
    problems: list[str] = []
    for error in wrong.errors(include_url=False):
        where = ".".join(str(part) for part in error["loc"])
        cause = error.get("ctx", {}).get("error")
        own = isinstance(cause, ValueError)
        what = error_text(cause) if own else Text(f"{error['msg'][:1].lower()}{error['msg'][1:]}")
        problems.append(text("roles.problem_at", where=where, problem=what) if where else what)
    rest = len(problems) - MAX_SHOWN
    more = [text("roles.more_problems", count=rest)] if rest > 0 else []
    return joined("clauses", [*problems[:MAX_SHOWN], *more])


def error_text(wrong: ValueError) -> Text:
    """Return the message of `wrong`, as a translatable Text if it has one."""
    said = wrong.args[0] if wrong.args else ""
    return said if isinstance(said, Text) else Text(str(wrong))


def fenced_blocks(text: str) -> Iterator[str]:
    """Yield the contents of fenced blocks; a longer fence holds shorter ones, an unclosed one runs to the end."""
    mark, indent, block = "", 0, list[str]()
    for line in text.replace("\r\n", "\n").split(
        "\n"
    ):  # splitlines also splits inside strings (U+0085, U+2028)
        found = _FENCE.match(line)
        if not mark:
            if found:
                mark, indent = found[2], len(found[1])
        elif found and found[2][0] == mark[0] and len(found[2]) >= len(mark) and not found[3].strip():
            yield "\n".join(block)
            mark, block = "", []
        else:
            block.append(line[indent:] if line[:indent].isspace() else line)
    if mark and block:
        yield "\n".join(block)


_FENCE = lazy(r"^(\s*)(`{3,}|~{3,})(.*)$")
_INLINE_FENCE = lazy(r"```(?:json)?\s*([\s\S]*?)\s*```")
_OPENERS = lazy(r"[{\[]")
_JSON_BEGINS = lazy(r"\{\s*(?:\"|\})|\[\s*(?:[\[{\"\d\]-]|true|false|null)")
_AT_LINE_START = lazy(r"^[{\[]", re.MULTILINE)


def _loads(written: str) -> JsonValue:
    """Strict JSON but for raw line breaks inside strings, which models write. Raises ValueError."""
    try:
        value: JsonValue = json.loads(written, strict=False, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError(text("forms.too_deep")) from None
    return without_lone_surrogates(value)


def _no_constant(name: str) -> JsonValue:
    raise ValueError(text("forms.no_value", name=name))


DECODER = json.JSONDecoder(strict=False, parse_constant=_no_constant)
"""Decodes JSON with raw line breaks inside strings, which models write."""


def _candidates(reply: str) -> Iterator[list[str]]:
    """Strategies 1 and 2, and the greedy form of 3: the texts of each."""
    whole = reply.strip().removeprefix("\ufeff")
    yield [whole] if whole else []
    yield [block for block in fenced_blocks(reply) if block.strip()]
    first, last = reply.find("{"), reply.rfind("}")
    yield [reply[first : last + 1]] if 0 <= first < last else []
    yield [found[1] for found in _INLINE_FENCE.finditer(reply)]


def _scan_values(reply: str) -> tuple[list[JsonValue], list[tuple[int, int]]]:
    """Strategy 3: return every outermost value in the text, and where broken ones are.

    The inside of a broken value is part of it: a list that was cut off is not its last complete action. Work is
    bounded by a few times the length of the reply.
    """
    found: list[JsonValue] = []
    broken: list[tuple[int, int]] = []
    budget = 8 * len(reply) + 10_000
    at = 0
    while budget > 0 and (opener := _JSON_BEGINS.search(reply, at)):
        start = opener.start()
        try:
            value, at = DECODER.raw_decode(reply, start)
        except json.JSONDecodeError as wrong:
            # Making the error counts the lines before it: that is why a late one costs more.
            budget -= wrong.pos - start + wrong.pos // 64 + 50
            end = len(reply) if wrong.msg.startswith("Unterminated string") else wrong.pos
            broken.append((start, end))
            resumed = _AT_LINE_START.search(reply, max(end, start + 1))
            at = resumed.start() if resumed else len(reply)
        except (RecursionError, ValueError):
            broken.append((start, len(reply)))
            break
        else:
            found.append(without_lone_surrogates(value))
    return found, broken


def _lines(reply: str, broken: list[tuple[int, int]]) -> Iterator[JsonValue]:
    """Strategy 4: every line that is JSON by itself, but for those inside a broken value."""
    at = 0
    for line in reply.split("\n"):
        start, at = at, at + len(line) + 1
        if line.strip() and not any(begin <= start < end for begin, end in broken[:MAX_SHOWN]):
            try:
                yield _loads(line)
            except ValueError:
                continue


def _repaired_parts(reply: str) -> Iterator[JsonValue]:
    """The last resort, on what looks like JSON and is not cut off."""
    for block in (*fenced_blocks(reply), reply):
        first = _OPENERS.search(block)
        last = max(block.rfind("}"), block.rfind("]"))
        if first is None or last <= first.start():
            continue
        part, rest = block[first.start() : last + 1], block[last + 1 :].lstrip()
        if not _balanced(part) or rest[:1] in (",", ":", '"'):
            continue
        try:
            yield repair_json(part)
        except (RecursionError, ValueError):
            continue


def _balanced(text: str) -> bool:
    """Return True if all brackets and quotes are closed. An apostrophe opens a text only before a value or name."""
    stack: list[str] = []
    quote, before, escaped = "", "", False
    for char in text:
        if quote:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == quote:
                quote = ""
        elif char == '"' or (char == "'" and before in ("", "{", "[", ",", ":")):
            quote = char
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
        elif char in "}]" and (not stack or stack.pop() != char):
            return False
        if not char.isspace():
            before = char
    return not stack and not quote


def json_problem(wrong: ValueError | RecursionError) -> Text:
    """Return why JSON could not be parsed, with the position if it is known."""
    if isinstance(wrong, RecursionError):
        return text("forms.too_deep")
    if isinstance(wrong, json.JSONDecodeError):
        return text("roles.json_error", problem=wrong.msg, line=wrong.lineno, column=wrong.colno)
    return error_text(wrong)


def without_lone_surrogates(value: JsonValue) -> JsonValue:
    r"""`"\ud800"` is valid JSON and no text: nothing could store it."""
    match value:
        case str():
            if any("\ud800" <= char <= "\udfff" for char in value):
                return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return value
        case list():
            return [without_lone_surrogates(item) for item in value]
        case dict():
            return {str(without_lone_surrogates(k)): without_lone_surrogates(v) for k, v in value.items()}
        case _:
            return value

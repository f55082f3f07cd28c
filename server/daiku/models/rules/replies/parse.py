"""Extraction of JSON from a model's reply: four strategies in order, then repair, each followed by validation."""

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

MAX_ATTEMPTS = 5
"""Maximum number of replies if each has a different error than the one before (R0.97)."""
MAX_SAME_ERRORS = 3
"""Number of replies with the same error after which the model is not asked again."""


def should_give_up(problems: Sequence[str]) -> bool:
    """Return True if a model whose replies had these problems should not be asked again."""
    same = len(problems) >= MAX_SAME_ERRORS and len(set(problems[-MAX_SAME_ERRORS:])) == 1
    return same or len(problems) >= MAX_ATTEMPTS


T = TypeVar("T")
Check = Callable[[JsonValue], T]
"""Converts parsed JSON to a typed value. Raises ValueError (also pydantic's) that describes the problem."""

SEVERAL = text("roles.several_json")
MAX_PROBLEMS = 6
"""Maximum number of problems sent to the model at once."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Reply that could not be parsed; `problem` is sent to the model. `words_only`: it is only plain text."""

    problem: Text
    words_only: bool = False


def read_json(reply: str, check: Check[T], *, cut: bool = False) -> T | Unreadable:
    """Return the value in `reply` that `check` accepts (R0.88–R0.95, C0.5, C0.7, C0.8).

    Tried in order: the complete reply, fenced blocks, balanced braces, lines, and a repair of almost-JSON. Several
    different values are an error. With `cut`, the reply hit a length limit, so nothing is repaired.
    """
    rejected = unparsed = Text("")
    for texts in _find_candidates(reply):
        fitting: list[tuple[JsonValue, T]] = []
        for candidate in texts:
            try:
                value = _parse(candidate)
            except ValueError as error:
                if candidate[:1] in ("{", "["):  # errors in prose do not help
                    unparsed = unparsed or describe_json_error(error)
                continue
            try:
                fitting.append((value, check(value)))
            except ValueError as error:
                rejected = rejected or describe_error(error)
        if fitting:
            return _choose_only(fitting)
    values, broken = _scan_values(reply)
    strategies = (_parse_lines(reply, broken), () if cut else _repair_parts(reply))
    for candidates in (values, *strategies):
        fitting = []
        for value in candidates:
            try:
                fitting.append((value, check(value)))
            except ValueError as error:
                rejected = rejected or describe_error(error)
            if fitting and candidates is not values:
                break
        if fitting:
            return _choose_only(fitting)
    if rejected:
        return Unreadable(rejected)
    if not any(bracket in reply for bracket in "{["):
        return Unreadable(text("roles.no_json"))
    if cut:
        return Unreadable(text("roles.json_cut_off", problem=unparsed))
    return Unreadable(unparsed or text("roles.bad_json"))


def _choose_only(fitting: list[tuple[JsonValue, T]]) -> T | Unreadable:
    """Return the only value. Different values are an error, as the intended one or their order is unknown."""
    first, result = fitting[0]
    return result if all(value == first for value, _ in fitting) else Unreadable(SEVERAL)


def find_json_values(reply: str) -> tuple[JsonValue, ...]:
    """Return every complete outermost JSON value in `reply`, in order."""
    return tuple(_scan_values(reply)[0])


def repair_json(text: str) -> JsonValue:
    """Parse almost-JSON leniently: quotes, commas, comments, brackets. Return "" if there is nothing."""
    import json_repair  # imported on first use, as it takes 30 ms

    value: JsonValue = json_repair.loads(text)  # pyright: ignore[reportAssignmentType]  # no schema, no logging: JSON
    return replace_lone_surrogates(value)


def repair_whole_json(text: str) -> JsonValue | None:
    """Return the JSON object or array in `text`, repaired if needed; None if it may be cut off."""
    if not _is_balanced(text):
        return None
    try:
        value = repair_json(text)
    except (RecursionError, ValueError):
        return None
    return value if isinstance(value, dict | list) else None


def parse_partial_json(text: str) -> JsonValue | None:
    """Return the value of incomplete JSON as far as it has arrived; None if it cannot be parsed yet.

    An unfinished string is included; an unfinished key, number, or literal is not.
    """
    try:
        value: JsonValue = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return None
    return value


def describe_error(error: ValueError) -> Text:
    """Return a one-line description of the problem: the field and its error."""
    if not isinstance(error, ValidationError):
        return get_error_text(error)
    problems: list[str] = []
    for detail in error.errors(include_url=False):
        where = ".".join(str(part) for part in detail["loc"])
        cause = detail.get("ctx", {}).get("error")
        is_own = isinstance(cause, ValueError)
        what = get_error_text(cause) if is_own else Text(f"{detail['msg'][:1].lower()}{detail['msg'][1:]}")
        problems.append(text("roles.problem_at", where=where, problem=what) if where else what)
    rest = len(problems) - MAX_PROBLEMS
    more = [text("roles.more_problems", count=rest)] if rest > 0 else []
    return joined("clauses", [*problems[:MAX_PROBLEMS], *more])


def get_error_text(error: ValueError) -> Text:
    """Return the error's message, as a translatable Text if it has one."""
    message = error.args[0] if error.args else ""
    return message if isinstance(message, Text) else Text(str(error))


def fenced_blocks(text: str) -> Iterator[str]:
    """Yield the contents of fenced blocks. A longer fence contains shorter ones; an unclosed one runs to the end."""
    mark, indent, block = "", 0, list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        if not mark:
            if match:
                mark, indent = match[2], len(match[1])
        elif match and match[2][0] == mark[0] and len(match[2]) >= len(mark) and not match[3].strip():
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


def _parse(json_text: str) -> JsonValue:
    """Parse strict JSON, except that raw line breaks are allowed in strings, as models write them. Raises ValueError."""
    try:
        value: JsonValue = json.loads(json_text, strict=False, parse_constant=_reject_constant)
    except RecursionError:
        raise ValueError(text("forms.too_deep")) from None
    return replace_lone_surrogates(value)


def _reject_constant(name: str) -> JsonValue:
    raise ValueError(text("forms.no_value", name=name))


DECODER = json.JSONDecoder(strict=False, parse_constant=_reject_constant)
"""Decoder that allows raw line breaks in strings, as models write them."""


def _find_candidates(reply: str) -> Iterator[list[str]]:
    """Yield the candidate texts of strategies 1 and 2, and of the greedy form of 3."""
    complete = reply.strip().removeprefix("\ufeff")
    yield [complete] if complete else []
    yield [block for block in fenced_blocks(reply) if block.strip()]
    first, last = reply.find("{"), reply.rfind("}")
    yield [reply[first : last + 1]] if 0 <= first < last else []
    yield [match[1] for match in _INLINE_FENCE.finditer(reply)]


def _scan_values(reply: str) -> tuple[list[JsonValue], list[tuple[int, int]]]:
    """Return every outermost value in the text, and the spans of broken ones (strategy 3).

    The inside of a broken value belongs to it: a list that was cut off is not its last complete action. Work is
    linear in the length of the reply.
    """
    values: list[JsonValue] = []
    broken: list[tuple[int, int]] = []
    budget = 8 * len(reply) + 10_000
    position = 0
    while budget > 0 and (opener := _JSON_BEGINS.search(reply, position)):
        start = opener.start()
        try:
            value, position = DECODER.raw_decode(reply, start)
        except json.JSONDecodeError as error:
            # Creating the error counts the lines before it, so a late one costs more.
            budget -= error.pos - start + error.pos // 64 + 50
            end = len(reply) if error.msg.startswith("Unterminated string") else error.pos
            broken.append((start, end))
            next_value = _AT_LINE_START.search(reply, max(end, start + 1))
            position = next_value.start() if next_value else len(reply)
        except (RecursionError, ValueError):
            broken.append((start, len(reply)))
            break
        else:
            values.append(replace_lone_surrogates(value))
    return values, broken


def _parse_lines(reply: str, broken: list[tuple[int, int]]) -> Iterator[JsonValue]:
    """Yield every line that is JSON, except inside a broken value (strategy 4)."""
    position = 0
    for line in reply.split("\n"):
        start, position = position, position + len(line) + 1
        if line.strip() and not any(begin <= start < end for begin, end in broken[:MAX_PROBLEMS]):
            try:
                yield _parse(line)
            except ValueError:
                continue


def _repair_parts(reply: str) -> Iterator[JsonValue]:
    """Yield repaired values of parts that look like JSON and are not cut off (last strategy)."""
    for block in (*fenced_blocks(reply), reply):
        first = _OPENERS.search(block)
        last = max(block.rfind("}"), block.rfind("]"))
        if first is None or last <= first.start():
            continue
        part, rest = block[first.start() : last + 1], block[last + 1 :].lstrip()
        if not _is_balanced(part) or rest[:1] in (",", ":", '"'):
            continue
        try:
            yield repair_json(part)
        except (RecursionError, ValueError):
            continue


def _is_balanced(text: str) -> bool:
    """Return True if all brackets and quotes are closed. An apostrophe opens a string only before a value or key."""
    stack: list[str] = []
    quote, previous, escaped = "", "", False
    for char in text:
        if quote:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == quote:
                quote = ""
        elif char == '"' or (char == "'" and previous in ("", "{", "[", ",", ":")):
            quote = char
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
        elif char in "}]" and (not stack or stack.pop() != char):
            return False
        if not char.isspace():
            previous = char
    return not stack and not quote


def describe_json_error(error: ValueError | RecursionError) -> Text:
    """Return why JSON could not be parsed, with the position if it is known."""
    if isinstance(error, RecursionError):
        return text("forms.too_deep")
    if isinstance(error, json.JSONDecodeError):
        return text("roles.json_error", problem=error.msg, line=error.lineno, column=error.colno)
    return get_error_text(error)


def replace_lone_surrogates(value: JsonValue) -> JsonValue:
    r"""Replace lone surrogates in all strings: `"\ud800"` is valid JSON, but cannot be stored."""
    match value:
        case str():
            if any("\ud800" <= char <= "\udfff" for char in value):
                return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return value
        case list():
            return [replace_lone_surrogates(item) for item in value]
        case dict():
            return {str(replace_lone_surrogates(k)): replace_lone_surrogates(v) for k, v in value.items()}
        case _:
            return value

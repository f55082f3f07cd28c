"""A server's form (elicitation) as questions to the person, and their answers as what the server asked for."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.texts.text import NO_TEXT, Text, joined, renderings, text
from daiku.tools.mcp.definitions import cleaned
from daiku.tools.tool import Ask

FIELDS = 20
TRIES = 3
MESSAGE = 2000
ANSWER, DECLINE, DONE, SKIP = (
    text("mcp.form_answer"),
    text("mcp.form_decline"),
    text("mcp.form_done"),
    text("mcp.form_skip"),
)


@dataclass(frozen=True, slots=True)
class FormResult:
    """What came of a form: `content` where it was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class _Wrong:
    """An answer that does not fit the field; `why` for the person."""

    why: Text


async def fill_form(server: str, message: str, schema: JsonObject, ask: Ask) -> FormResult:
    """Put the form to the person, one question a field. Whatever is not clearly an answer declines."""
    raw = schema.get("properties")
    properties = dict(list(raw.items())[:FIELDS]) if isinstance(raw, dict) else {}
    wanted = schema.get("required")
    required = [name for name in wanted if isinstance(name, str)] if isinstance(wanted, list) else []
    if not set(required) <= set(properties):
        return FormResult("cancel")
    told = text("mcp.asks", name=repr(server), message=cleaned(message, MESSAGE))
    fields = ", ".join(cleaned(name, 80) for name in properties)
    if fields:
        told = joined("lines", [told, text("mcp.form_wants", names=fields)])
    if not await _agreed(told, ANSWER, ask):
        return FormResult("decline")
    content: JsonObject = {}
    for name, node in properties.items():
        value = await _field(name, node if isinstance(node, dict) else {}, name in required, ask)
        if isinstance(value, _Wrong):
            return FormResult("cancel")
        if value is not None:
            content[name] = value
    return FormResult("accept", content)


async def ask_to_open_page(server: str, message: str, url: str, ask: Ask) -> FormResult:
    """Ask the person to open a page of the server; it is never opened for them."""
    told = text(
        "mcp.open_page", name=repr(server), message=cleaned(message, MESSAGE), url=cleaned(url, MESSAGE)
    )
    done = await _agreed(joined("lines", [told, text("mcp.only_if_expected")]), DONE, ask)
    return FormResult("accept" if done else "decline")


async def _agreed(question: Text, yes: Text, ask: Ask) -> bool:
    """Whether the person chose `yes`; everything else declines."""
    return (await ask(question, (yes, DECLINE))).choice == 0


async def _field(name: str, node: JsonObject, required: bool, ask: Ask) -> JsonValue | _Wrong:
    """The value, None where an optional field is left out, _Wrong where no answer fits."""
    many = node.get("type") == "array"
    items = node.get("items")
    choices = _choices(items if many and isinstance(items, dict) else node)
    default = node.get("default")
    about = cleaned(str(node.get("description") or node.get("title") or ""), 500)
    question = Text(f"{cleaned(name, 80)}{f' – {about}' if about else ''}")
    if many:
        question = text("mcp.form_several", what=question)
    if default is not None:
        question = text("mcp.form_default", what=question, value=cleaned(str(default), 80))
    offered = tuple(choices) if required and default is None else (*choices, SKIP) if choices else ()
    said, wrong = "", NO_TEXT
    for _ in range(TRIES):
        answer = await ask(joined("sentences", [wrong, question]), offered)
        said = answer.text.strip() if answer.choice is None else (*choices, "")[answer.choice]
        if not said:
            if default is not None:
                return default
            if not required:
                return None
            wrong = text("mcp.answer_needed")
            continue
        value = _many(said, choices, node) if many else _one(said, choices, node)
        if not isinstance(value, _Wrong):
            return value
        wrong = value.why
    return _Wrong(wrong)


def _choices(node: JsonObject) -> dict[Text, JsonValue]:
    """What is shown -> what is answered."""
    if node.get("type") == "boolean":
        return {text("mcp.yes"): True, text("mcp.no"): False}
    values, names = node.get("enum"), node.get("enumNames")
    if isinstance(values, list):
        shown = names if isinstance(names, list) and len(names) == len(values) else values
        return {Text(cleaned(str(name), 200)): value for name, value in zip(shown, values, strict=True)}
    options = node.get("oneOf") or node.get("anyOf")
    found: dict[Text, JsonValue] = {}
    for option in options if isinstance(options, list) else ():
        if isinstance(option, dict) and "const" in option:
            found[Text(cleaned(str(option.get("title") or option["const"]), 200))] = option["const"]
    return found


def _one(said: str, choices: dict[Text, JsonValue], node: JsonObject) -> JsonValue | _Wrong:
    if choices:
        for shown, value in choices.items():
            if said.casefold() in {name.casefold() for name in (*renderings(shown), str(value))}:
                return value
        return _Wrong(text("mcp.one_of", names=joined("list", choices)))
    match node.get("type"):
        case "integer" | "number" as kind:
            return _number(said, kind == "integer", node)
        case _:
            low, high = node.get("minLength"), node.get("maxLength")
            if isinstance(low, int) and len(said) < low:
                return _Wrong(text("mcp.at_least_characters", low=low))
            if isinstance(high, int) and len(said) > high:
                return _Wrong(text("mcp.at_most_characters", high=high))
            return said


def _many(said: str, choices: dict[Text, JsonValue], node: JsonObject) -> JsonValue | _Wrong:
    found: list[JsonValue] = []
    for part in (p.strip() for p in said.split(",") if p.strip()):
        value = _one(part, choices, {"type": "string"})
        if isinstance(value, _Wrong):
            return value
        found.append(value)
    low, high = node.get("minItems"), node.get("maxItems")
    if (isinstance(low, int) and len(found) < low) or (isinstance(high, int) and len(found) > high):
        return _Wrong(text("mcp.wrong_count"))
    return found


def _number(said: str, whole: bool, node: JsonObject) -> JsonValue | _Wrong:
    try:
        value = int(said) if whole else float(said)
    except ValueError:
        return _Wrong(text("mcp.whole_number") if whole else text("mcp.number"))
    low, high = node.get("minimum"), node.get("maximum")
    if isinstance(low, int | float) and value < low:
        return _Wrong(text("mcp.at_least", low=low))
    if isinstance(high, int | float) and value > high:
        return _Wrong(text("mcp.at_most", high=high))
    return value

"""The forms of text that models answer in: plan lines, action lists, command or done."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic import (
    AliasChoices,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from daiku.core.parse import Unreadable, read_json
from daiku.core.planheads import like_a_machine, plan_head, printable
from daiku.core.planlines import FENCE, NUMBER, check_line, open_check
from daiku.domain.base import Frozen, JsonObject

MAX_ACTIONS = 50


class PlanReply(Frozen):
    """The planner's five parts (R0.22–R0.30)."""

    project: str = Field(min_length=1)
    reply: str = Field(min_length=1)
    focus: str = Field(min_length=1)
    plans: tuple[str, ...] = Field(min_length=1)
    summary: str = Field(min_length=1)

    @field_validator("reply")
    @classmethod
    def _human(cls, value: str) -> str:
        if like_a_machine(value):
            raise ValueError('must sound like a person and not begin with "As an AI"')
        return value

    @field_validator("plans", mode="before")
    @classmethod
    def _numbered(cls, value: Any) -> Any:
        """Steps may come as `{"1": "…", "2": "…"}`, and each as an object with its checks."""
        if isinstance(value, dict):
            rows: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
            return tuple(_numbered_text(key, step) for key, step in rows.items())
        steps: Any = value
        if not isinstance(steps, Iterable) or isinstance(steps, str):
            return value
        return tuple(_step_text(step) for step in steps)  # pyright: ignore[reportUnknownVariableType]  # JSON from a model


def _numbered_text(key: str, step: Any) -> Any:
    text = _step_text(step)
    number = re.fullmatch(r"(?:step)?[\s_]*(\d+)", key.strip(), re.IGNORECASE)
    return (
        f"Step {number[1]}: {text}" if number and isinstance(text, str) and not NUMBER.match(text) else text
    )


def _step_text(step: Any) -> Any:
    """A step that came as an object, as the lines that it would have been."""
    if not isinstance(step, dict):
        return step
    found: dict[str, Any] = step  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
    name = next((found[key] for key in ("step", "name", "title", "action") if found.get(key)), "")
    checks, after = found.get("acceptance") or found.get("check") or (), found.get("depends_on")
    number = next((found[key] for key in ("number", "id", "step_number") if found.get(key) is not None), "")
    if re.fullmatch(r"\d+", str(number)) and not NUMBER.match(str(name)):
        name = f"Step {number}: {name}"
    lines = [str(name), str(found.get("description") or "")]
    lines += [check_line(check) for check in ([checks] if isinstance(checks, str) else checks)]
    if isinstance(after, list):
        names: list[Any] = after  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
        lines.append("Depends on: " + (", ".join(str(each) for each in names) or "none"))
    return "\n".join(line for line in lines if line)


class ActionReply(Frozen):
    """One operation of an action list; `id` is how later ones refer to its result (R4.24, C4.8)."""

    operation: str = Field(
        min_length=1, validation_alias=AliasChoices("operation", "tool", "name", "tool_name")
    )
    args: JsonObject = Field(
        default={}, validation_alias=AliasChoices("args", "arguments", "parameters", "input")
    )
    reasoning: str | None = Field(default=None, validation_alias=AliasChoices("reasoning", "comment"))
    id: str = Field(default="", validation_alias=AliasChoices("id", "action_id"), coerce_numbers_to_str=True)

    @field_validator("args", mode="before")
    @classmethod
    def _as_object(cls, value: Any) -> Any:
        """No arguments may be null; some models send them as JSON text."""
        if value is None:
            return {}
        if isinstance(value, str) and value.lstrip().startswith("{"):
            return TypeAdapter(JsonObject).validate_json(value)
        return value


class ActionsReply(Frozen):
    """An action list and what is said beside it; an empty list only answers (C4.10)."""

    actions: tuple[ActionReply, ...] = Field(max_length=MAX_ACTIONS)
    comment: str = ""

    @model_validator(mode="before")
    @classmethod
    def _forms(cls, data: Any) -> Any:
        """A bare list, one bare action, and the other names of the list are the same thing."""
        if isinstance(data, list):
            return {"actions": data}  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
        if not isinstance(data, dict):
            return data
        found: dict[str, Any] = data  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
        for name in ("actions", "action_list", "ActionList", "tool_calls"):
            if name in found:
                return {"actions": found[name] or [], "comment": _comment_of(found)}
        if isinstance(found.get("operation"), str) or (
            isinstance(found.get("tool") or found.get("name") or found.get("tool_name"), str)
            and any(
                isinstance(found.get(k), dict | str) for k in ("args", "arguments", "parameters", "input")
            )
        ):
            return {"actions": [found]}
        raise ValueError('there is no "actions" list in the JSON')


class CommandReply(Frozen):
    """One command or the end (R2.47–R2.51); the outer comment wins over the command's own (C2.2)."""

    comment: str = ""
    tool: str = ""
    args: JsonObject = {}
    done: bool = False

    @model_validator(mode="before")
    @classmethod
    def _forms(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            raise ValueError('the JSON must be an object with "command" or "done"')  # noqa: TRY004  # pydantic wants ValueError
        found: dict[str, Any] = data  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
        comment = _comment_of(found)
        command = found.get("command")
        if isinstance(command, dict):
            inner: dict[str, Any] = command  # pyright: ignore[reportUnknownVariableType]  # JSON from a model
            if not isinstance(inner.get("tool"), str) or not inner["tool"].strip():
                raise ValueError('"command.tool" is missing: name the tool as "server/tool"')
            return {
                "comment": comment or _comment_of(inner),
                "tool": inner["tool"],
                "args": inner.get("args") if inner.get("args") is not None else {},
            }
        if found.get("done") is True:
            return {"comment": comment, "done": True}
        if "done" in found and "command" not in found:
            raise ValueError('"done" must be true; to go on, answer with "command"')
        raise ValueError('the JSON must have "command" (an object with tool and args) or "done": true')


def _comment_of(data: dict[str, Any]) -> str:
    for name in ("comment", "reply", "message", "response"):
        if isinstance(text := data.get(name), str) and text:
            return text
    return ""


_PLAN = TypeAdapter(PlanReply)
_ACTIONS = TypeAdapter(ActionsReply)
_COMMAND = TypeAdapter(CommandReply)


def read_plan(reply: str) -> PlanReply | Unreadable:
    """The planner's reply: its line format first, JSON with the same five keys second (C0.3)."""
    reply = printable(reply)
    parts = plan_lines(reply)
    if not parts:
        found = read_json(reply, _plan_of)
        if not isinstance(found, Unreadable) or "{" in reply:
            return found
    try:
        return _PLAN.validate_python(parts)
    except ValueError:
        missing = [_PLAN_HEADS[key] for key in PlanReply.model_fields if not parts.get(key)]
        if missing:
            problem = "the plan lacks " + ", ".join(missing)
            return Unreadable(problem, words_only=not parts and bool(reply.strip()))
        return Unreadable('"Your Reply to the Human Prompter" must not begin with "As an AI"')


def read_actions(reply: str, *, cut: bool = False) -> ActionsReply | Unreadable:
    """An action list in any of its forms."""
    return read_json(reply, _ACTIONS.validate_python, cut=cut)


def read_command(reply: str, *, cut: bool = False) -> CommandReply | Unreadable:
    """`{"command": {…}, "comment": "…"}` or `{"done": true, "comment": "…"}`."""
    return read_json(reply, _COMMAND.validate_python, cut=cut)


def _plan_of(value: JsonValue) -> PlanReply:
    """The plan in a JSON object whose keys are the plan's heads; other keys are ignored, models like to
    add some. Raises ValueError in the words of the form."""
    if not isinstance(value, dict):
        raise ValueError('the JSON must be an object with "project", "reply", "focus", "plans" and "summary"')  # noqa: TRY004  # what read_json catches
    heads = {key: plan_head(f"{key}:") for key in value}
    parts: dict[str, JsonValue] = {
        key if key in PlanReply.model_fields or head is None else head[0]: _printable(value[key])
        for key, head in heads.items()
    }
    try:
        return _PLAN.validate_python({key: parts[key] for key in PlanReply.model_fields if key in parts})
    except ValidationError as wrong:
        raise ValueError("; ".join(map(_in_words, wrong.errors(include_url=False)))) from None


def _in_words(error: ErrorDetails) -> str:
    name = error["loc"][0] if error["loc"] else "plan"
    match error["type"]:
        case "missing":
            return f'"{name}" is missing'
        case "value_error":
            return f'"{name}" {error["msg"].removeprefix("Value error, ")}'
        case "string_too_short" | "too_short":
            return f'"{name}" is empty'
        case _:
            return f'"{name}" must be ' + ("a list of steps" if name == "plans" else "a text")


def _printable(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return printable(value)
        case list():
            return [_printable(each) for each in value]
        case dict():
            return {key: _printable(each) for key, each in value.items()}
        case _:
            return value


_PLAN_HEADS = {
    "project": '"Project Name:"',
    "reply": '"Your Reply to the Human Prompter:"',
    "focus": '"Current Focus:"',
    "plans": '"Plan:" with lines "- [ ] Step 1: …"',
    "summary": '"Summary:"',
}
_STEP = re.compile(r"^(?P<indent>\s*)[-*+]\s*\[[ xX]?\]\s*(?P<text>.*)$")
NESTED = 2
"""Columns that an item stands further in than the first step where it is a part of the step above it."""


def plan_lines(reply: str) -> dict[str, Any]:
    """The parts of a plan written in lines; empty where there are none (R0.22–R0.26).

    Emphasis, headings and full-width colons are borne; a part may run over several lines. Each step keeps
    the number that is written before it; what is indented below a step belongs to it.
    """
    parts: dict[str, list[str]] = {}
    steps: list[str] = []
    before: list[str] = []
    here, margin, fence = "", 0, ""
    for line in (each.expandtabs(4) for each in reply.splitlines()):
        if fence:
            steps[-1] += "\n" + line.strip()
            fence = "" if line.strip().startswith(fence) else fence
            continue
        if mark := FENCE.match(line):
            if here == "plans" and steps and open_check(steps[-1]):
                steps[-1] += "\n" + line.strip()
                fence = mark["mark"]
            continue
        step = _STEP.match(line)
        if here == "plans" and step and (not steps or len(step["indent"]) < margin + NESTED):
            margin = margin if steps else len(step["indent"])
            steps.append(step["text"].strip())
        elif head := plan_head(line):
            here = head[0]
            parts[here] = [head[1]]
            if here == "plans":  # a plan that comes again is the revised one
                before, steps = steps or before, []
        elif here == "plans" and steps and line.strip():
            steps[-1] += "\n" + line.strip()
        elif here:
            parts[here].append(line)
    found: dict[str, Any] = {key: "\n".join(lines).strip() for key, lines in parts.items() if key != "plans"}
    if "plans" in parts or steps:
        found["plans"] = tuple(step for step in steps or before if step)
    return found if len(found) > 1 or "plans" in found else {}

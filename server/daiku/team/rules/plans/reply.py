"""Parse the planner's reply: plan lines, or JSON with the same five keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import Field, JsonValue, TypeAdapter, ValidationError, field_validator
from pydantic_core import ErrorDetails

from daiku.domain.base import Frozen
from daiku.models.rules.replies.parse import Unreadable, get_error_text, read_json
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.visible import strip_invisible
from daiku.texts.text import Text, joined, text


class PlannedStep(Frozen):
    """A planner's step, with its `number` if any. `depends_on` None: it depends on the step before."""

    number: str = ""
    name: str
    description: str = ""
    acceptance: tuple[str, ...] = ()
    depends_on: tuple[str, ...] | None = None


NUMBER = lazy(r"^\s*\**\s*(?:step|ステップ)\s*#?(\d+(?:\.\d+)*)\s*\**\s*[:：.)]\s*\**\s*", re.IGNORECASE)
_CHECK = lazy(
    r"^[\s*_-]*(?:check|checks|acceptance|verify|verification|検証|確認)[*_\s]*"
    r"(?P<time>[(（]\s*\d+\s*[^\W\d]+\s*[)）])?[*_\s]*[:：][*_\s]*(?P<check>.*)$",
    re.IGNORECASE,
)
_AFTER = lazy(r"^[\s*_-]*(?:depends on|after|依存)[*_\s]*[:：][*_\s]*(.*)$", re.IGNORECASE)
_NO_STEP = lazy(r"\W*(?:none|nothing|no|なし|-)?\W*", re.IGNORECASE)
FENCE = lazy(r"^\s*(?P<mark>`{3,}|~{3,})")
_LISTED = lazy(r"^\s*(?:[-*+]|\d+[.)])\s+(?!\[)(?P<check>.+)$")
_ONE_COMMAND = lazy(r"^\s*(?:for|while|until|if|case|function)\b|[{(]\s*$|<<", re.MULTILINE)


def parse_planned_step(text: str) -> PlannedStep:
    """Parse a step: its first line is the name. The command of an empty `Check:` is on the lines below."""
    first, *rest = text.strip().splitlines() or [""]
    number = NUMBER.match(first)
    description: list[str] = []
    checks: list[str] = []
    after: tuple[str, ...] | None = None
    while rest:
        line, rest = rest[0], rest[1:]
        if match := _CHECK.match(line):
            time, check = f"{match['time']} " if match["time"] else "", _unquote(match["check"])
            commands = [check] if check else []
            if not check:
                commands, rest = _parse_checks_below(rest)
            checks += [time + command for command in commands if not _NO_STEP.fullmatch(command)]
        elif match := _AFTER.match(line):
            after = () if _NO_STEP.fullmatch(match[1]) else tuple(_parse_step_names(match[1]))
        else:
            description.append(line)
    name = first if number is None else first[number.end() :]
    return PlannedStep(
        number=number[1] if number else "",
        name=name.strip("* "),
        description="\n".join(description),
        acceptance=tuple(checks),
        depends_on=after,
    )


def has_open_check(step: str) -> bool:
    """Return True if the last line of a step is a `Check:` whose command follows."""
    last = _CHECK.match(step.rpartition("\n")[2])
    return last is not None and not last["check"].strip()


def _parse_checks_below(lines: list[str]) -> tuple[list[str], list[str]]:
    """Parse the checks below an empty `Check:`; return them and the lines after them."""
    while lines and not lines[0].strip():
        lines = lines[1:]
    if not lines:
        return [], []
    if fence := FENCE.match(lines[0]):
        closes = (n for n, line in enumerate(lines[1:], 1) if line.strip().startswith(fence["mark"]))
        end = next(closes, len(lines))
        return _parse_commands(lines[1:end]), lines[end + 1 :]
    checks: list[str] = []
    while lines and not _is_field_start(lines[0]) and (item := _LISTED.match(lines[0])):
        checks.append(_unquote(item["check"]))
        lines = lines[1:]
    if not checks and not _is_field_start(lines[0]):
        checks, lines = [_unquote(lines[0])], lines[1:]
    return checks, lines


def _is_field_start(line: str) -> bool:
    return bool(_CHECK.match(line) or _AFTER.match(line))


def _parse_commands(lines: list[str]) -> list[str]:
    """Parse the commands in a fence, one per line; a command over several lines stays together."""
    text = "\n".join(re.sub(r"^\s*\$\s+", "", line).rstrip() for line in lines).strip("\n")
    if _ONE_COMMAND.search(text):
        return [text]
    joined_text = re.sub(r"\s*\\\n\s*", " ", text)
    joined_text = re.sub(r"(&&|\|\|?)\s*\n\s*", r"\1 ", joined_text)
    return [
        line.strip()
        for line in joined_text.splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]


def _unquote(check: str) -> str:
    """Return the command without inline code marks."""
    check = check.strip().strip("*").strip()
    inner = re.fullmatch(r"(`+)\s?(.*?)\s?\1\.?", check)
    return inner[2] if inner else check


def _parse_step_names(text: str) -> Iterator[str]:
    """Yield the step names of `Depends on:`: numbers, with or without the word before them."""
    for part in re.split(r"[,;、]|\band\b", text):
        name = re.sub(r"^(?:steps?|ステップ)\s*#?(?=\d)", "", part.strip(" .`"), flags=re.IGNORECASE)
        if name:
            yield name


_NAMES = {
    "project": r"project(?: name)?|プロジェクト(?:名)?|計画名",
    "reply": r"your reply to the human prompter|(?:あなたへの|依頼者への|ユーザーへの)?(?:ご?返答|ご?返信|ご?回答)",
    "focus": r"current focus|focus|(?:現在の)?(?:焦点|重点|フォーカス)",
    "plans": r"(?:(?:revised|updated|new|final) )?plan"
    r"|(?:(?:修正(?:した|後の|版の?)?|改訂(?:した|版の?)?|新しい|最終)の?)?(?:計画|プラン)",
    "summary": r"summary|要約|まとめ|概要",
}
_HEAD = lazy(
    r"(?P<marks>[\s#>*_■●◆・-]*)(?P<opened>[【「『\[]?)\s*(?:"
    + "|".join(f"(?P<{key}>{name})" for key, name in _NAMES.items())
    + r")\s*[*_]*[】」』\]]?[*_\s]*(?P<colon>[:：]?)[*_]*\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)


def parse_plan_head(line: str) -> tuple[str, str] | None:
    """Return the plan part that begins on this line (`project`, `reply`, `focus`, `plans`, `summary`) and the line's rest.

    None for any other line. Without a colon, only heading marks make a line a heading.
    """
    match = _HEAD.match(line)
    if match is None:
        return None
    is_heading = "#" in match["marks"] or match["opened"] == "【"
    if not match["colon"] and (match["rest"] or not is_heading):
        return None
    return next(key for key in _NAMES if match[key] is not None), match["rest"]


_MACHINE = lazy(
    r"\W*(?:(?:as|i am|i['’]m)\W+(?:just |only |simply )?(?:an?|your)\W+(?:helpful |large )?"
    r"(?:ai|a\.i\.|artificial intelligence|language model|llm)\b(?!-)"
    r"|(?:(?:私|わたし|僕)は)?(?:単なる|ただの|一つの)?(?:ai|ａｉ|人工知能|(?:大規模)?言語モデル)"
    r"(?:の?アシスタント|の?言語モデル|モデル)?(?:として|です|なので|であり|である|ですので))",
    re.IGNORECASE,
)


def is_machine_like(text: str) -> bool:
    """Return True if a reply begins like a machine's (R0.31, C0.15), in English or Japanese."""
    return _MACHINE.match(text) is not None


_ESCAPE = lazy(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")


def strip_control_characters(text: str) -> str:
    """Remove terminal escapes and invisible characters."""
    return strip_invisible(_ESCAPE.sub("", text))


class PlanReply(Frozen):
    """The planner's five parts (R0.22–R0.30)."""

    project: str = Field(min_length=1)
    reply: str = Field(min_length=1)
    focus: str = Field(min_length=1)
    plans: tuple[str, ...] = Field(min_length=1)
    summary: str = Field(min_length=1)

    @field_validator("reply")
    @classmethod
    def _check_human(cls, value: str) -> str:
        if is_machine_like(value):
            raise ValueError(text("forms.machine", name="reply"))
        return value


_PLAN = TypeAdapter(PlanReply)


def read_plan(reply: str) -> PlanReply | Unreadable:
    """Parse the planner's reply: the line format first, then JSON with the same five keys (C0.3)."""
    reply = strip_control_characters(reply)
    parts = parse_plan_lines(reply)
    if not parts:
        plan = read_json(reply, _parse_json_plan)
        if not isinstance(plan, Unreadable) or "{" in reply:
            return plan
    try:
        return _PLAN.validate_python(parts)
    except ValueError:
        missing = [_PLAN_HEADS[key] for key in PlanReply.model_fields if not parts.get(key)]
        if missing:
            problem = text("forms.lacks", names=", ".join(missing))
            return Unreadable(problem, words_only=not parts.get("plans") and bool(reply.strip()))
        return Unreadable(text("forms.machine_reply"))


def _parse_json_plan(value: JsonValue) -> PlanReply:
    """Parse a plan from a JSON object; unknown keys are ignored. Raises ValueError with the form's messages."""
    if not isinstance(value, dict):
        raise ValueError(text("forms.plan_object"))  # noqa: TRY004  # read_json catches ValueError
    heads = {key: parse_plan_head(f"{key}:") for key in value}
    parts: dict[str, JsonValue] = {
        key if key in PlanReply.model_fields or head is None else head[0]: _strip_values(value[key])
        for key, head in heads.items()
    }
    try:
        return _PLAN.validate_python({key: parts[key] for key in PlanReply.model_fields if key in parts})
    except ValidationError as error:
        raise ValueError(joined("clauses", map(_describe_problem, error.errors(include_url=False)))) from None


def _describe_problem(error: ErrorDetails) -> Text:
    name = str(error["loc"][0] if error["loc"] else "plan")
    match error["type"]:
        case "missing":
            return text("forms.missing", name=name)
        case "value_error":
            return get_error_text(error.get("ctx", {}).get("error") or ValueError(error["msg"]))
        case "string_too_short" | "too_short":
            return text("forms.empty", name=name)
        case _:
            return text("forms.steps", name=name) if name == "plans" else text("forms.text", name=name)


def _strip_values(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return strip_control_characters(value)
        case list():
            return [_strip_values(each) for each in value]
        case dict():
            return {key: _strip_values(each) for key, each in value.items()}
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
"""Minimum extra indentation in columns that makes an item a part of the step above."""


def parse_plan_lines(reply: str) -> dict[str, Any]:
    """Parse the parts of a plan written in lines; empty if there are none (R0.22–R0.26).

    Emphasis, headings, and full-width colons are accepted. Lines indented below a step belong to it.
    """
    parts: dict[str, list[str]] = {}
    steps: list[str] = []
    earlier_steps: list[str] = []
    part, margin, fence = "", 0, ""
    for line in (text_line.expandtabs(4) for text_line in reply.splitlines()):
        if fence:
            steps[-1] += "\n" + line.strip()
            fence = "" if line.strip().startswith(fence) else fence
            continue
        if mark := FENCE.match(line):
            if part == "plans" and steps and has_open_check(steps[-1]):
                steps[-1] += "\n" + line.strip()
                fence = mark["mark"]
            continue
        step = _STEP.match(line)
        if part == "plans" and step and (not steps or len(step["indent"]) < margin + NESTED):
            margin = margin if steps else len(step["indent"])
            steps.append(step["text"].strip())
        elif head := parse_plan_head(line):
            part = head[0]
            parts[part] = [head[1]]
            if part == "plans":  # a repeated plan is the revised one
                earlier_steps, steps = steps or earlier_steps, []
        elif part == "plans" and steps and line.strip():
            steps[-1] += "\n" + line.strip()
        elif part:
            parts[part].append(line)
    result: dict[str, Any] = {key: "\n".join(lines).strip() for key, lines in parts.items() if key != "plans"}
    if "plans" in parts or steps:
        result["plans"] = tuple(step for step in steps or earlier_steps if step)
    return result if len(result) > 1 or "plans" in result else {}

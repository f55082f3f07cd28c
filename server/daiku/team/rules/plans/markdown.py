"""Render plans as Markdown checklists, and parse plans from checklists, planner replies, or JSON."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from pydantic import JsonValue

from daiku.domain.errors import Failure, UsageError
from daiku.domain.work.plans import Plan, Step, WorkStatus
from daiku.models.rules.replies.parse import Unreadable, read_json
from daiku.team.rules.plans.proposed import ProposedStep, as_proposed, link_steps
from daiku.team.rules.plans.reply import PlannedStep, PlanReply, parse_planned_step, read_plan
from daiku.team.rules.plans.transitions import format_step_details, update_status
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import text

NAME_LIMIT = 80
_NO_STEP = Failure(kind="usage", message=text("plan.no_step"), hint=text("plan.give_checklist"))
FAILED_MARK = "❌"

_ITEM = lazy(
    r"^(?P<indent>\s{0,3})[-*+]\s+\[(?P<box>[ xX])\]\s*(?P<failed>❌)?\s*"
    r"(?:\*\*)?(?:(?:sub)?(?:step|task)|ステップ)?[\s_#-]*(?P<number>\d+)?(?:\*\*)?\s*[:.：)]\s*(?:\*\*)?\s*(?P<text>.*)$",
    re.IGNORECASE,
)
_BARE_ITEM = lazy(r"^(?P<indent>\s{0,3})[-*+]\s+\[(?P<box>[ xX])\]\s*(?P<failed>❌)?\s*(?P<text>.*)$")
_PLAIN_ITEM = lazy(r"^(?P<indent>\s{0,3})(?:[-*+]|\d+[.)])\s+(?P<text>\S.*)$")
_ID = lazy(r"\s*`(step_[0-9a-f]{8})`\s*$")
_NOW = " (in progress)"
_CHECK = lazy(r"^(?:- )?Check(?P<time> \(\d+ (?:min|s)\))?: (?P<fence>`+) ?(?P<check>.*?) ?(?P=fence)$")
_AFTER = lazy(r"^- Depends on: (?P<after>.+)$")
_FOOTER = lazy(r"^\*?Progress:", re.IGNORECASE)
_BACKSLASH = "\\"
_SPECIAL = lazy(r"^(?=[-*\\]|progress:|check(?: \(|:))", re.IGNORECASE)
"""Line starts with a meaning in the checklist; a backslash before one makes it plain text."""
_ESCAPED = lazy(r"^\\(?=[-*\\]|progress:|check(?: \(|:))", re.IGNORECASE)


# ---- rendering


def to_markdown(plan: Plan) -> str:
    """Render the plan as a checklist that `from_markdown` parses: names, texts, order, checks, status."""
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    lines = [f"# {_flatten(plan.name)}", "", *_quote(plan.goal), ""]
    if plan.summary.strip():
        lines += ["Summary:", "", *_quote(plan.summary), ""]
    for number, step in enumerate(plan.steps, 1):
        lines += _render_item(number, step, numbers)
    completed, total = plan.progress()
    share = f" ({100 * completed // total}%)" if total else ""
    return "\n".join([*lines, "", f"*Progress: {completed}/{total}{share}*", ""])


def format_for_approval(plan: Plan) -> str:
    """Render the plan for approval: everything that will be done and run, without ids."""
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    paragraphs = [part for part in (plan.goal.strip(), plan.summary.strip()) if part]
    lines = [f"# {_flatten(plan.name)}", ""]
    for part in dict.fromkeys(paragraphs):
        lines += [part, ""]
    for number, step in enumerate(plan.steps, 1):
        lines += _render_item(number, step.model_copy(update={"step_id": ""}), numbers)
    if plan.dropped_checks:
        dropped = ", ".join(f"`{check}`" for check in plan.dropped_checks)
        lines += ["", f"Checks that are in the plan no more: {dropped}."]
    return "\n".join(lines)


def _render_item(number: int, step: Step, numbers: dict[str, int]) -> Iterator[str]:
    box = "[x]" if step.status == "completed" else "[ ]"
    mark = f" {FAILED_MARK}" if step.status == "failed" else ""
    progress_mark = _NOW if step.status == "in_progress" else ""
    id_mark = f" `{step.step_id}`" if step.step_id else ""
    yield f"- {box}{mark} Step {number}: {_flatten(step.name)}{progress_mark}{id_mark}"
    for line in _split_trimmed(step.description):
        yield f"  {_SPECIAL.sub(lambda _: _BACKSLASH, line)}".rstrip()
    yield from (f"  - {line}" for line in format_step_details(step, numbers))


def _quote(text: str) -> Iterator[str]:
    yield from (f"> {line}".rstrip() for line in _split_trimmed(text))


def _flatten(text: str) -> str:
    return " ".join(text.split())


def _split_trimmed(text: str) -> list[str]:
    """Split a text into stripped lines, without empty lines at its ends."""
    return (
        "\n".join(line.strip() for line in text.splitlines()).strip("\n").split("\n") if text.strip() else []
    )


# ---- parsing


def read_plan_text(text: str) -> Plan:
    """Parse a plan from a Markdown checklist, the planner's lines, or JSON (steps, or subtasks with actions).

    The plan gets new ids and is a draft if nothing of it is done. Raises UsageError if there are no steps,
    ToolValidationError for dependencies on unknown steps.
    """
    is_checklist = any(_BARE_ITEM.match(line) for line in text.splitlines())
    plan = _parse_json(text) if "{" in text and not is_checklist else None
    if plan is None:
        reply = None if re.search(r"^# ", text, re.MULTILINE) else read_plan(text)
        plan = _build_from_reply(reply) if isinstance(reply, PlanReply) else from_markdown(text)
    if not plan.steps:
        raise UsageError(_NO_STEP)
    return plan


def from_markdown(text: str, step_ids: Collection[str] = ()) -> Plan:
    """Parse a plan from a checklist of Daiku or another program: a heading, text, items with indented details.

    In a foreign list, a step depends on the one before unless it says otherwise. An open step makes the plan a draft.
    Ids in `step_ids` are kept; all other steps get new ids.
    """
    lines = text.splitlines()
    name = next((line.lstrip("#").strip() for line in lines if line.startswith("#")), "")
    pattern = _BARE_ITEM if any(_BARE_ITEM.match(line) for line in lines) else _PLAIN_ITEM
    before: list[str] = []
    after: list[str] = []
    is_after_heading = False
    items: list[tuple[re.Match[str], list[str]]] = []
    for line in lines:
        match = pattern.match(line)
        is_after_heading = is_after_heading and match is None
        if match is not None and (not items or len(match["indent"]) <= len(items[0][0]["indent"])):
            items.append((_ITEM.match(line) or match, []))
        elif line.startswith("#"):
            is_after_heading = bool(items)
        elif is_after_heading and match is None:
            after.append(line)
        elif items:
            items[-1][1].append(line)
        else:
            before.append(line)
    goal, summary = _parse_goal(before)
    summary = "\n".join(part for part in (summary, _join_lines(after)) if part)
    proposed, statuses = _parse_steps(items)
    steps = tuple(
        step.model_copy(update={"status": status})
        for step, status in zip(_keep_ids(link_steps(proposed), items, step_ids), statuses, strict=True)
    )
    goal = goal or name
    plan = Plan(name=name or goal.split("\n", 1)[0][:NAME_LIMIT], goal=goal, summary=summary, steps=steps)
    is_done = update_status(plan).status == "completed"
    return plan.model_copy(update={"status": "completed"}) if is_done else plan


def revise_plan(plan: Plan, text: str) -> Plan:
    """Apply an edited checklist to `plan`: steps keep their ids, tasks, and focus.

    Raises UsageError if there are no steps, ToolValidationError for dependencies on unknown steps.
    """
    old_steps = {step.step_id: step for step in plan.steps}
    edited = from_markdown(text, old_steps)
    if not edited.steps:
        raise UsageError(_NO_STEP)
    steps = tuple(
        step.model_copy(update={"task_list": old_steps[step.step_id].task_list})
        if step.step_id in old_steps
        else step
        for step in edited.steps
    )
    details = {"name": edited.name, "goal": edited.goal, "summary": edited.summary}
    return plan.model_copy(update={**details, "steps": steps})


def _keep_ids(
    steps: Sequence[Step], items: Iterable[tuple[re.Match[str], list[str]]], step_ids: Collection[str]
) -> tuple[Step, ...]:
    """Give each step the id written after its name if it is one of `step_ids`."""
    ids: dict[str, str] = {}
    for step, (match, _) in zip(steps, items, strict=True):
        id_match = _ID.search(match["text"])
        is_kept = id_match is not None and id_match[1] in step_ids and id_match[1] not in ids.values()
        ids[step.step_id] = id_match[1] if id_match is not None and is_kept else step.step_id
    return tuple(
        step.model_copy(
            update={
                "step_id": ids[step.step_id],
                "depends_on": tuple(ids[step_id] for step_id in step.depends_on),
            }
        )
        for step in steps
    )


def _parse_goal(lines: list[str]) -> tuple[str, str]:
    """Parse goal and summary: both quoted as Daiku writes them, else the full text is the goal."""
    text = "\n".join(re.sub(r"^>\s?", "", line) for line in lines).strip("\n")
    quoted = any(line.startswith(">") for line in lines)
    heads = [i for i, line in enumerate(lines) if line.strip() == "Summary:"]
    if not quoted or not heads:
        return _join_lines(text.splitlines()), ""
    parts = lines[: heads[0]], lines[heads[0] + 1 :]
    goal, summary = (_join_lines([re.sub(r"^>\s?", "", line) for line in part]) for part in parts)
    return goal, summary


def _parse_steps(
    items: list[tuple[re.Match[str], list[str]]],
) -> tuple[tuple[ProposedStep, ...], list[WorkStatus]]:
    is_own_format = any(_ID.search(match["text"]) for match, _ in items)
    numbers = [match.groupdict().get("number") or "" for match, _ in items]
    has_numbers = all(numbers) and len(set(numbers)) == len(numbers)
    planned: list[PlannedStep] = []
    statuses: list[WorkStatus] = []
    for index, (match, below_it) in enumerate(items):
        parts = match.groupdict()
        name = _ID.sub("", parts["text"].strip())
        in_progress = name.endswith(_NOW)
        name = name.removesuffix(_NOW).strip().removesuffix("**").strip()
        lines = [line.strip() for line in below_it if not _FOOTER.match(line.strip())]
        step = (
            _parse_own_step(name, lines)
            if is_own_format
            else parse_planned_step("\n".join([name or "-", *lines]))
        )
        details = {"name": name, "description": _join_lines(step.description.splitlines())}
        planned.append(step.model_copy(update={**details, "number": numbers[index] if has_numbers else ""}))
        box = (parts.get("box") or " ").lower()
        failed, open_status = bool(parts.get("failed")), "in_progress" if in_progress else "pending"
        statuses.append("completed" if box == "x" else "failed" if failed else open_status)
    return as_proposed(planned), statuses


def _parse_own_step(name: str, lines: list[str]) -> PlannedStep:
    """Parse a step in the form of `to_markdown`."""
    description: list[str] = []
    checks: list[str] = []
    after: tuple[str, ...] = ()
    for line in lines:
        if match := _CHECK.match(line):
            time = (match["time"] or "").strip()
            checks.append(f"{time} {match['check']}" if time else match["check"])
        elif match := _AFTER.match(line):
            after = tuple(part.strip() for part in match["after"].split(",") if part.strip())
        else:
            description.append(_ESCAPED.sub("", line))
    return PlannedStep(
        name=name, description="\n".join(description), acceptance=tuple(checks), depends_on=after
    )


def _join_lines(lines: Iterable[str]) -> str:
    return "\n".join(line.strip() for line in lines).strip("\n")


def _build_from_reply(reply: PlanReply) -> Plan:
    """Build a plan from the planner's five parts (X.6); each step depends on the one before."""
    steps = link_steps(as_proposed(parse_planned_step(text) for text in reply.plans))
    return Plan(name=reply.project, goal=reply.focus, focus=reply.focus, summary=reply.summary, steps=steps)


# ---- JSON: goal and steps (R4.38), or goal, subtasks and actions (S2P.4–S2P.6)


def _parse_json(text: str) -> Plan | None:
    plan = read_json(text, _build_from_json)
    return None if isinstance(plan, Unreadable) else plan


def _build_from_json(value: JsonValue) -> Plan:
    if not isinstance(value, dict):
        raise ValueError("a plan is an object")  # noqa: TRY004  # a problem of the text
    for key in ("subtasks", "steps"):
        rows = value.get(key)
        inner = value.get("task_decomposition") or value.get("decomposition")
        if not isinstance(rows, list) and isinstance(inner, dict):
            rows = inner.get(key)
        if isinstance(rows, list) and rows:
            return _build_from_rows(value, [row for row in rows if isinstance(row, dict)])
    raise ValueError('there is no "steps" and no "subtasks" in the JSON')


def _build_from_rows(value: dict[str, JsonValue], rows: list[dict[str, JsonValue]]) -> Plan:
    goal = value.get("goal") or value.get("goal_understanding") or value
    details = goal if isinstance(goal, dict) else {"main_objective": goal}
    objective = _to_text(details.get("main_objective") or value.get("name")) or "Plan"
    actions = [a for a in _to_list(value.get("actions")) if isinstance(a, dict)]
    order = [_to_text(entry) for entry in _to_list(value.get("execution_order"))]
    rank = {name: index for index, name in enumerate(order)}
    rows = sorted(rows, key=lambda row: rank.get(_to_text(row.get("id")), len(rank)))
    proposed = [
        _build_proposed_step(row, [a for a in actions if a.get("task_id") == row.get("id")]) for row in rows
    ]
    lines = [
        f"{title}: {'; '.join(_to_text(entry) for entry in _to_list(details.get(key)))}"
        for key, title in (("success_criteria", "Success"), ("constraints", "Constraints"))
        if _to_list(details.get(key))
    ]
    summary = "\n".join([*lines, *(_to_text(details.get("context")).splitlines())])
    name = _to_text(value.get("name")) or objective.split("\n", 1)[0][:NAME_LIMIT]
    return Plan(name=name, goal=objective, summary=summary, steps=link_steps(proposed))


def _build_proposed_step(row: dict[str, JsonValue], actions: list[dict[str, JsonValue]]) -> ProposedStep:
    description = _to_text(row.get("description"))
    name = _to_text(row.get("name")) or description.split("\n", 1)[0][:NAME_LIMIT]
    lines = [description] if description != name else []
    if complexity := _to_text(row.get("estimated_complexity")):
        lines.append(f"Complexity: {complexity}")
    if tools := [_to_text(tool) for tool in _to_list(row.get("required_tools"))]:
        lines.append(f"Tools: {', '.join(tools)}")
    for action in actions:
        parts = (
            _to_text(action.get("purpose")),
            _to_text(action.get("tool")),
            _to_text(action.get("expected_outcome")),
        )
        purpose, tool, outcome = parts
        line = f"- {purpose or tool}" + (f" ({tool})" if tool and purpose else "")
        lines.append(f"{line}: {outcome}" if outcome else line)
        if fallback := _to_text(action.get("fallback_strategy")):
            lines.append(f"  Else: {fallback}")
    after = _to_list(row.get("depends_on") or row.get("dependencies"))
    checks = _to_list(row.get("acceptance"))
    step_id = _to_text(row.get("id"))
    return ProposedStep(
        step_id, name, "\n".join(lines), tuple(map(_to_text, after)), tuple(map(_to_text, checks))
    )


def _to_text(value: JsonValue) -> str:
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)


def _to_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []

"""Write plans as Markdown checklists, and parse plans from checklists, planner replies or JSON."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from pydantic import JsonValue

from daiku.domain.errors import Failure, UsageError
from daiku.domain.work.plans import Plan, Step, WorkStatus
from daiku.models.rules.replies.parse import Unreadable, read_json
from daiku.team.rules.plans.proposed import ProposedStep, as_proposed, link_steps
from daiku.team.rules.plans.reply import PlanReply, read_plan
from daiku.team.rules.plans.steptext import PlannedStep, planned_step
from daiku.team.rules.plans.transitions import step_details, update_status
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
"""What would be read as something else at the start of a line; a backslash before it says that it is text."""
_ESCAPED = lazy(r"^\\(?=[-*\\]|progress:|check(?: \(|:))", re.IGNORECASE)


# ---- out


def to_markdown(plan: Plan) -> str:
    """The plan as a checklist that `from_markdown` reads back: names, texts, order, checks, status."""
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    lines = [f"# {_flat(plan.name)}", "", *_quoted(plan.goal), ""]
    if plan.summary.strip():
        lines += ["Summary:", "", *_quoted(plan.summary), ""]
    for number, step in enumerate(plan.steps, 1):
        lines += _item(number, step, numbers)
    done, total = plan.progress()
    share = f" ({100 * done // total}%)" if total else ""
    return "\n".join([*lines, "", f"*Progress: {done}/{total}{share}*", ""])


def approval_text(plan: Plan) -> str:
    """The plan for whoever is asked to approve it: all that will be done and run, and no ids."""
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    about = [part for part in (plan.goal.strip(), plan.summary.strip()) if part]
    lines = [f"# {_flat(plan.name)}", ""]
    for part in dict.fromkeys(about):
        lines += [part, ""]
    for number, step in enumerate(plan.steps, 1):
        lines += _item(number, step.model_copy(update={"step_id": ""}), numbers)
    if plan.dropped_checks:
        gone = ", ".join(f"`{check}`" for check in plan.dropped_checks)
        lines += ["", f"Checks that are in the plan no more: {gone}."]
    return "\n".join(lines)


def _item(number: int, step: Step, numbers: dict[str, int]) -> Iterator[str]:
    box = "[x]" if step.status == "completed" else "[ ]"
    mark = f" {FAILED_MARK}" if step.status == "failed" else ""
    now = _NOW if step.status == "in_progress" else ""
    known = f" `{step.step_id}`" if step.step_id else ""
    yield f"- {box}{mark} Step {number}: {_flat(step.name)}{now}{known}"
    for line in _trimmed(step.description):
        yield f"  {_SPECIAL.sub(lambda _: _BACKSLASH, line)}".rstrip()
    yield from (f"  - {line}" for line in step_details(step, numbers))


def _quoted(text: str) -> Iterator[str]:
    yield from (f"> {line}".rstrip() for line in _trimmed(text))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _trimmed(text: str) -> list[str]:
    """Lines without white space around them, and without empty lines around them."""
    return (
        "\n".join(line.strip() for line in text.splitlines()).strip("\n").split("\n") if text.strip() else []
    )


# ---- in


def read_plan_text(text: str) -> Plan:
    """A plan from a Markdown checklist, the planner's lines, or JSON (goal and steps, or a decomposition
    into subtasks with actions). A new plan with new ids, a draft where nothing of it is done. Raises
    UsageError where it holds no step, ToolValidationError where steps depend on what is not there."""
    listed = any(_BARE_ITEM.match(line) for line in text.splitlines())
    shaped = _json_plan(text) if "{" in text and not listed else None
    if shaped is None:
        reply = None if re.search(r"^# ", text, re.MULTILINE) else read_plan(text)
        shaped = _of_reply(reply) if isinstance(reply, PlanReply) else from_markdown(text)
    if not shaped.steps:
        raise UsageError(_NO_STEP)
    return shaped


def from_markdown(text: str, step_ids: Collection[str] = ()) -> Plan:
    """Build a plan from a checklist of ours or another program: a heading, text, items with indented details.

    In a foreign list, a step depends on the one before unless it says otherwise. An open step makes the plan a
    draft. Stated `step_ids` are kept; all other steps get new ids.
    """
    lines = text.splitlines()
    name = next((line.lstrip("#").strip() for line in lines if line.startswith("#")), "")
    pattern = _BARE_ITEM if any(_BARE_ITEM.match(line) for line in lines) else _PLAIN_ITEM
    before: list[str] = []
    after: list[str] = []
    heading = False
    items: list[tuple[re.Match[str], list[str]]] = []
    for line in lines:
        found = pattern.match(line)
        heading = heading and found is None
        if found is not None and (not items or len(found["indent"]) <= len(items[0][0]["indent"])):
            items.append((_ITEM.match(line) or found, []))
        elif line.startswith("#"):
            heading = bool(items)
        elif heading and found is None:
            after.append(line)
        elif items:
            items[-1][1].append(line)
        else:
            before.append(line)
    goal, summary = _goal(before)
    summary = "\n".join(part for part in (summary, _joined(after)) if part)
    given, statuses = _steps(items)
    steps = tuple(
        step.model_copy(update={"status": status})
        for step, status in zip(_keep_ids(link_steps(given), items, step_ids), statuses, strict=True)
    )
    goal = goal or name
    plan = Plan(name=name or goal.split("\n", 1)[0][:NAME_LIMIT], goal=goal, summary=summary, steps=steps)
    done = update_status(plan).status == "completed"
    return plan.model_copy(update={"status": "completed"}) if done else plan


def revise_plan(plan: Plan, text: str) -> Plan:
    """Apply an edited checklist of `plan` to it: steps keep their ids, tasks and focus. Raises UsageError
    where the text holds no step, ToolValidationError where steps depend on what is not there."""
    known = {step.step_id: step for step in plan.steps}
    edited = from_markdown(text, known)
    if not edited.steps:
        raise UsageError(_NO_STEP)
    steps = tuple(
        step.model_copy(update={"task_list": known[step.step_id].task_list})
        if step.step_id in known
        else step
        for step in edited.steps
    )
    about = {"name": edited.name, "goal": edited.goal, "summary": edited.summary}
    return plan.model_copy(update={**about, "steps": steps})


def _keep_ids(
    steps: Sequence[Step], items: Iterable[tuple[re.Match[str], list[str]]], step_ids: Collection[str]
) -> tuple[Step, ...]:
    """Give each step the id that is written after its name, where it is one of `step_ids`."""
    ids: dict[str, str] = {}
    for step, (found, _) in zip(steps, items, strict=True):
        own = _ID.search(found["text"])
        kept = own is not None and own[1] in step_ids and own[1] not in ids.values()
        ids[step.step_id] = own[1] if own is not None and kept else step.step_id
    return tuple(
        step.model_copy(
            update={"step_id": ids[step.step_id], "depends_on": tuple(ids[each] for each in step.depends_on)}
        )
        for step in steps
    )


def _goal(lines: list[str]) -> tuple[str, str]:
    """Goal and summary: quoted as we write them, else all text is the goal."""
    text = "\n".join(re.sub(r"^>\s?", "", line) for line in lines).strip("\n")
    quoted = any(line.startswith(">") for line in lines)
    heads = [i for i, line in enumerate(lines) if line.strip() == "Summary:"]
    if not quoted or not heads:
        return _joined(text.splitlines()), ""
    parts = lines[: heads[0]], lines[heads[0] + 1 :]
    goal, summary = (_joined([re.sub(r"^>\s?", "", line) for line in part]) for part in parts)
    return goal, summary


def _steps(items: list[tuple[re.Match[str], list[str]]]) -> tuple[tuple[ProposedStep, ...], list[WorkStatus]]:
    ours = any(_ID.search(found["text"]) for found, _ in items)
    numbers = [found.groupdict().get("number") or "" for found, _ in items]
    named = all(numbers) and len(set(numbers)) == len(numbers)
    planned: list[PlannedStep] = []
    statuses: list[WorkStatus] = []
    for place, (found, below_it) in enumerate(items):
        parts = found.groupdict()
        name = _ID.sub("", parts["text"].strip())
        now = name.endswith(_NOW)
        name = name.removesuffix(_NOW).strip().removesuffix("**").strip()
        lines = [line.strip() for line in below_it if not _FOOTER.match(line.strip())]
        step = _ours(name, lines) if ours else planned_step("\n".join([name or "-", *lines]))
        about = {"name": name, "description": _joined(step.description.splitlines())}
        planned.append(step.model_copy(update={**about, "number": numbers[place] if named else ""}))
        box = (parts.get("box") or " ").lower()
        failed, open_ = bool(parts.get("failed")), "in_progress" if now else "pending"
        statuses.append("completed" if box == "x" else "failed" if failed else open_)
    return as_proposed(planned), statuses


def _ours(name: str, lines: list[str]) -> PlannedStep:
    """A step as `to_markdown` wrote it."""
    about: list[str] = []
    checks: list[str] = []
    after: tuple[str, ...] = ()
    for line in lines:
        if found := _CHECK.match(line):
            time = (found["time"] or "").strip()
            checks.append(f"{time} {found['check']}" if time else found["check"])
        elif found := _AFTER.match(line):
            after = tuple(part.strip() for part in found["after"].split(",") if part.strip())
        else:
            about.append(_ESCAPED.sub("", line))
    return PlannedStep(name=name, description="\n".join(about), acceptance=tuple(checks), depends_on=after)


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(line.strip() for line in lines).strip("\n")


def _of_reply(reply: PlanReply) -> Plan:
    """The planner's five parts (X.6): one step after the other."""
    steps = link_steps(as_proposed(planned_step(text) for text in reply.plans))
    return Plan(name=reply.project, goal=reply.focus, focus=reply.focus, summary=reply.summary, steps=steps)


# ---- JSON: goal and steps (R4.38), or goal, subtasks and actions (S2P.4–S2P.6)


def _json_plan(text: str) -> Plan | None:
    found = read_json(text, _shaped)
    return None if isinstance(found, Unreadable) else found


def _shaped(value: JsonValue) -> Plan:
    if not isinstance(value, dict):
        raise ValueError("a plan is an object")  # noqa: TRY004  # what is wrong with a text
    for key in ("subtasks", "steps"):
        rows = value.get(key)
        inner = value.get("task_decomposition") or value.get("decomposition")
        if not isinstance(rows, list) and isinstance(inner, dict):
            rows = inner.get(key)
        if isinstance(rows, list) and rows:
            return _of_rows(value, [row for row in rows if isinstance(row, dict)])
    raise ValueError('there is no "steps" and no "subtasks" in the JSON')


def _of_rows(value: dict[str, JsonValue], rows: list[dict[str, JsonValue]]) -> Plan:
    goal = value.get("goal") or value.get("goal_understanding") or value
    about = goal if isinstance(goal, dict) else {"main_objective": goal}
    objective = _text(about.get("main_objective") or value.get("name")) or "Plan"
    actions = [a for a in _list(value.get("actions")) if isinstance(a, dict)]
    wanted = [_text(each) for each in _list(value.get("execution_order"))]
    rank = {name: place for place, name in enumerate(wanted)}
    rows = sorted(rows, key=lambda row: rank.get(_text(row.get("id")), len(rank)))
    given = [_given(row, [a for a in actions if a.get("task_id") == row.get("id")]) for row in rows]
    more = [
        f"{title}: {'; '.join(_text(each) for each in _list(about.get(key)))}"
        for key, title in (("success_criteria", "Success"), ("constraints", "Constraints"))
        if _list(about.get(key))
    ]
    summary = "\n".join([*more, *(_text(about.get("context")).splitlines())])
    name = _text(value.get("name")) or objective.split("\n", 1)[0][:NAME_LIMIT]
    return Plan(name=name, goal=objective, summary=summary, steps=link_steps(given))


def _given(row: dict[str, JsonValue], actions: list[dict[str, JsonValue]]) -> ProposedStep:
    about = _text(row.get("description"))
    name = _text(row.get("name")) or about.split("\n", 1)[0][:NAME_LIMIT]
    lines = [about] if about != name else []
    if complexity := _text(row.get("estimated_complexity")):
        lines.append(f"Complexity: {complexity}")
    if tools := [_text(tool) for tool in _list(row.get("required_tools"))]:
        lines.append(f"Tools: {', '.join(tools)}")
    for action in actions:
        parts = (
            _text(action.get("purpose")),
            _text(action.get("tool")),
            _text(action.get("expected_outcome")),
        )
        purpose, tool, outcome = parts
        line = f"- {purpose or tool}" + (f" ({tool})" if tool and purpose else "")
        lines.append(f"{line}: {outcome}" if outcome else line)
        if fallback := _text(action.get("fallback_strategy")):
            lines.append(f"  Else: {fallback}")
    after = _list(row.get("depends_on") or row.get("dependencies"))
    checks = _list(row.get("acceptance"))
    own = _text(row.get("id"))
    return ProposedStep(own, name, "\n".join(lines), tuple(map(_text, after)), tuple(map(_text, checks)))


def _text(value: JsonValue) -> str:
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []

"""Packaged templates by id, with the type of each template's variables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel

from daiku.team.agent import Prompt
from daiku.team.coding.coder import CodeVariables
from daiku.team.coding.item_request import ItemVariables
from daiku.team.coding.planner import PlanVariables
from daiku.team.coding.reporter import ReportVariables
from daiku.team.coding.researcher import ResearchVariables
from daiku.team.coding.runner import RepairVariables, RunVariables
from daiku.team.coding.tasks import TaskReportVariables, TasksVariables
from daiku.team.drafting.draft import SectionsVariables
from daiku.team.drafting.part_request import PartVariables
from daiku.team.drafting.reflection import EvaluationVariables, LessonsVariables
from daiku.team.drafting.run_reflection import CurationVariables, ReflectionVariables
from daiku.team.system_prompt import NoVariables, SystemVariables
from daiku.team.table import ALL_AGENTS

_AGENTS = {
    agent.instructions.id: SystemVariables
    for agent in ALL_AGENTS.values()
    if isinstance(agent.instructions, Prompt)
}
TEMPLATES: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        **_AGENTS,
        "agents/coder_request": CodeVariables,
        "agents/curator_request": CurationVariables,
        "agents/draft_request": PartVariables,
        "agents/eval_request": EvaluationVariables,
        "agents/lessons_request": LessonsVariables,
        "agents/planner_request": PlanVariables,
        "agents/reflector_request": ReflectionVariables,
        "agents/reporter_request": ReportVariables,
        "agents/researcher_request": ResearchVariables,
        "agents/runner_repair": RepairVariables,
        "agents/runner_request": RunVariables,
        "agents/sections_request": SectionsVariables,
        "agents/style_request": PartVariables,
        "agents/task_loop_request": TaskReportVariables,
        "agents/tasks_request": TasksVariables,
        "parts/family": SystemVariables,
        "parts/manners": SystemVariables,
        "parts/place": SystemVariables,
        "parts/summary": NoVariables,
        "work/item": ItemVariables,
    }
)

"""Every packaged template by its id, with the type of the variables that it is filled from."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel

from daiku.agents.agent import Prompt
from daiku.agents.coding.coder import CodeVariables
from daiku.agents.coding.item_request import ItemVariables
from daiku.agents.coding.planner import PlanVariables
from daiku.agents.coding.reporter import ReportVariables
from daiku.agents.coding.researcher import ResearchVariables
from daiku.agents.coding.runner import RepairVariables, RunVariables
from daiku.agents.coding.tasks import ReportVariables as TaskReportVariables
from daiku.agents.coding.tasks import TasksVariables
from daiku.agents.drafting.draft import SectionsVariables
from daiku.agents.drafting.evaluator import EvaluationVariables
from daiku.agents.drafting.part_request import PartVariables
from daiku.agents.drafting.reflection import LessonsVariables
from daiku.agents.learning.curator import CurationVariables
from daiku.agents.learning.reflector import ReflectionVariables
from daiku.agents.system_prompt import NoVariables, SystemVariables
from daiku.agents.table import ALL_AGENTS

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

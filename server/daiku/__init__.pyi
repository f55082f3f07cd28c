# The names of the library, for type checkers: the package itself loads each when it is first used.

from daiku.domain.chunks import Chunk as Chunk
from daiku.domain.errors import GuardrailViolation as GuardrailViolation
from daiku.domain.events import ApprovalAsked as ApprovalAsked
from daiku.domain.events import ApprovalDecision as ApprovalDecision
from daiku.domain.work.patches import Change as Change
from daiku.domain.work.patches import ChangeOp as ChangeOp
from daiku.domain.work.patches import PatchJSON as PatchJSON
from daiku.edits.rules.changes.changemap import merge_patches as merge_patches
from daiku.guard.guardrails.guardrail import Guardrail as Guardrail
from daiku.guard.guardrails.tokens import TokenGuard as TokenGuard
from daiku.library.runner import Runner as Runner
from daiku.memory.memory import Memory as Memory
from daiku.models.adapter import LLMAdapter as LLMAdapter
from daiku.team.agent import Agent as Agent
from daiku.team.routing.model import LLMRouter as LLMRouter
from daiku.team.routing.rule_router import RuleRouter as RuleRouter
from daiku.team.running import Result as Result
from daiku.tools.functions import tool as tool
from daiku.tools.registry import ToolRegistry as ToolRegistry
from daiku.tools.tool import Tool as Tool
from daiku.tools.tool import ToolContext as ToolContext
from daiku.trace.telemetry.logger import TraceLogger as TraceLogger

__version__: str
_PLACES: dict[str, str]

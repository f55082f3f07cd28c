# The names of the library, for type checkers: the package itself loads each when it is first used.

from daiku.agents.agent import Agent as Agent
from daiku.agents.running import Result as Result
from daiku.core.changes.changemap import merge_patches as merge_patches
from daiku.domain.chunks import Chunk as Chunk
from daiku.domain.errors import GuardrailViolation as GuardrailViolation
from daiku.domain.events import ApprovalAsked as ApprovalAsked
from daiku.domain.events import ApprovalDecision as ApprovalDecision
from daiku.domain.work.patches import Change as Change
from daiku.domain.work.patches import ChangeOp as ChangeOp
from daiku.domain.work.patches import PatchJSON as PatchJSON
from daiku.guardrails.guardrail import Guardrail as Guardrail
from daiku.guardrails.tokens import TokenGuard as TokenGuard
from daiku.llm.adapter import LLMAdapter as LLMAdapter
from daiku.memory.memory import Memory as Memory
from daiku.routing.model import LLMRouter as LLMRouter
from daiku.routing.rules import RuleRouter as RuleRouter
from daiku.sdk.runner import Runner as Runner
from daiku.tools.functions import tool as tool
from daiku.tools.registry import ToolRegistry as ToolRegistry
from daiku.tools.tool import Tool as Tool
from daiku.tools.tool import ToolContext as ToolContext
from daiku.trace.telemetry.logger import TraceLogger as TraceLogger

__version__: str
_PLACES: dict[str, str]

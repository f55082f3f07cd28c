"""Asks, from the agent's process, that the work tree is kept on the server before a step of the plan counts as done."""

from __future__ import annotations

import asyncio
import logging

from daiku.dataclass import dataclass, replace
from daiku.domain.items.intents import KeepTree
from daiku.domain.tools import ToolResult
from daiku.items.intents import IntentStore
from daiku.items.record import Claim
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import ToolContext
from daiku.tools.work.plan import UpdateStepArgs

logger = logging.getLogger(__name__)
KEEP = "keep"
"""The operation of an item by which its tree is kept."""
STEP_TOOL = "plan/update_step"
IN_VAIN = (
    "The step is not completed: its work was lost with the machine that you worked on. Look at the files, do again what "
    "is missing, then say that it is completed."
)
LOOK_SECONDS = 0.1
LONGEST_SECONDS = 120.0
"""How long a step waits for its tree to be kept; after that it counts as done without."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Asks for the tree of the claimed item to be kept. `in_vain`: the calls that were begun in a tree that is lost."""

    intents: IntentStore
    claim: Claim
    in_vain: frozenset[str] = frozenset()

    async def keep(self, name: str, of: str) -> bool:
        """Wait until the tree as it is now is kept under the words `name`; False where it is not, which is logged.
        Raises ClaimLost."""
        wanted = KeepTree(name=name, of=of)
        self.intents.want(self.claim, KEEP, wanted)
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST_SECONDS
        while loop.time() < until:
            found = self.intents.find(self.claim.item, KEEP)
            if found is not None and found.intent == wanted and found.status in ("done", "refused"):
                return found.status == "done"  # of a refusal the log is told by who was refused
            await asyncio.sleep(LOOK_SECONDS)
        logger.warning("%s: “%s” is not kept on the server: that took too long", self.claim.item, name)
        return False


def keep_before_steps(registry: ToolRegistry, keeping: Keeping) -> None:
    """Have every step's tree kept before the tool of the plan marks it as completed."""
    loaded = registry.get(STEP_TOOL)
    assert loaded is not None, "the tool of the plan is always there"
    plain = loaded.tool

    async def update_step(args: UpdateStepArgs, context: ToolContext) -> ToolResult:
        if args.status == "completed" and context.call_id in keeping.in_vain:
            return ToolResult(outcome="failed", text=IN_VAIN)
        if args.status == "completed":
            await keeping.keep(_name(args.step_id, context), context.call_id)
        return await plain.run(args, context)

    registry.add((replace(plain, run=update_step),))


def _name(step: str, context: ToolContext) -> str:
    """What the step is called."""
    from daiku.team.rules.plans.transitions import find_step  # when used

    found = (find_step(plan, step) for plan in reversed(context.plans()))
    return next((each.name for each in found if each is not None), step)

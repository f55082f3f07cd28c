"""Keep the work tree on the server before a plan step counts as done, as requested by the agent's process."""

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
"""Operation name of keeping an item's tree."""
STEP_TOOL = "plan/update_step"
IN_VAIN = (
    "The step is not completed: its work was lost with the machine that you worked on. Look at the files, do again what "
    "is missing, then say that it is completed."
)
LOOK_SECONDS = 0.1
"""Poll interval in seconds of the kept tree."""
LONGEST_SECONDS = 120.0
"""Maximum seconds that a step waits for its tree to be kept; after that it counts as done without."""


@dataclass(frozen=True, slots=True)
class TreeKeeper:
    """Requests that the claimed item's tree be kept.

    `lost_calls`: ids of calls started in a tree that is lost.
    """

    intents: IntentStore
    claim: Claim
    lost_calls: frozenset[str] = frozenset()

    async def keep(self, name: str, of: str) -> bool:
        """Wait until the current tree is kept under `name`; return False and log it if that fails.

        Raises ClaimLost.
        """
        intent = KeepTree(name=name, of=of)
        self.intents.want(self.claim, KEEP, intent)
        loop = asyncio.get_running_loop()
        until = loop.time() + LONGEST_SECONDS
        while loop.time() < until:
            record = self.intents.find(self.claim.item, KEEP)
            if record is not None and record.intent == intent and record.status in ("done", "refused"):
                return record.status == "done"  # a refusal is logged where it occurs
            await asyncio.sleep(LOOK_SECONDS)
        logger.warning("%s: “%s” is not kept on the server: that took too long", self.claim.item, name)
        return False


def keep_before_steps(registry: ToolRegistry, keeping: TreeKeeper) -> None:
    """Wrap the plan tool so that the tree is kept before a step is marked as completed."""
    loaded = registry.get(STEP_TOOL)
    assert loaded is not None, "the tool of the plan is always there"
    plain = loaded.tool

    async def update_step(args: UpdateStepArgs, context: ToolContext) -> ToolResult:
        if args.status == "completed" and context.call_id in keeping.lost_calls:
            return ToolResult(outcome="failed", text=IN_VAIN)
        if args.status == "completed":
            await keeping.keep(_find_step_name(args.step_id, context), context.call_id)
        return await plain.run(args, context)

    registry.add((replace(plain, run=update_step),))


def _find_step_name(step: str, context: ToolContext) -> str:
    """Return the step's name; its id if there is no such step."""
    from daiku.team.rules.plans.transitions import find_step  # when used

    steps = (find_step(plan, step) for plan in reversed(context.plans()))
    return next((found.name for found in steps if found is not None), step)

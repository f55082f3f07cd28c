"""Guard policy of a run: settings, mode, grants, and paths relative to the workspace."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from daiku.domain.runs import ApprovalMode, Mode
from daiku.guard.rules.policy import Policy, SandboxState
from daiku.run.rules.outside import Grants, Workspace
from daiku.settings.config import Config
from daiku.workspace.disk import is_closed


def run_policy(
    config: Config,
    workspace: Workspace,
    grants: Grants,
    key: str,
    trusted: bool,
    own: bool,
    mode: Mode,
    approvals: ApprovalMode,
    attended: bool,
) -> Policy:
    """Build the guard's policy for a run. `key`: the key of the workspace's grants."""
    return Policy(
        approvals=config.approvals,
        mode=mode,
        approval_mode=approvals,
        trusted=trusted,
        own=own or not workspace.roots,  # without a folder there are no untrusted texts
        headless=not attended,
        sandbox=_sandbox_state(config, workspace),
        network=config.sandbox.network,
        hosts=config.work.network,
        granted=partial(grants.lookup, key),
        resolve=_make_resolver(workspace),
        closed=partial(is_closed, workspace),
        roots=tuple(str(root) for root in workspace.roots),
        home=os.path.expanduser("~"),  # noqa: PTH111  # a tenth of what a Path costs, for every run
    )


def restrict_for_work_item(config: Config) -> Config:
    """Return the settings for a run on a work item: no user variables, extra folders, or network in commands."""
    restrictions = {"environment": (), "write": (), "network": False}
    return config.model_copy(update={"sandbox": config.sandbox.model_copy(update=restrictions)})


def _sandbox_state(config: Config, workspace: Workspace) -> SandboxState:
    """Return the sandbox state; "missing" without a folder, as probing a sandbox starts programs."""
    if not workspace.roots:
        return "missing"
    from daiku.guard.sandbox import sandbox_state  # when used

    return sandbox_state(config.sandbox)


def _make_resolver(workspace: Workspace) -> Callable[[str], str | None]:
    def resolve(path: str) -> str | None:
        try:
            return workspace.relative(workspace.locate(path))
        except Exception:  # noqa: BLE001  # an invalid path is not inside
            return None

    return resolve

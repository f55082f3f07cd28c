"""The prompts of a workspace; the types of template variables are imported on first use."""

from __future__ import annotations

from daiku.prompts import Prompts, Variables
from daiku.run.rules.outside import Workspace
from daiku.settings.config import Config
from daiku.team.system_prompt import SystemVariables


def build_prompts(config: Config, workspace: Workspace, *, own: bool) -> Prompts:
    """Build the prompts of a workspace. `own`: its templates replace the packaged ones (trusted workspace)."""
    root = workspace.roots[0] if workspace.roots else None
    return Prompts(
        language=config.prompts.language,
        workspace=root if own else None,
        untrusted=None if own else root,
        variables=_load_variables,
        usual=SystemVariables,
    )


def _load_variables() -> Variables:
    from daiku.team.templates import TEMPLATES  # when used

    return TEMPLATES

"""The prompts of a workspace; what its templates are filled from is imported when one of them is looked at."""

from __future__ import annotations

from daiku.prompts import Prompts, Variables
from daiku.run.rules.outside import Workspace
from daiku.settings.config import Config
from daiku.team.system_prompt import SystemVariables


def prompts_of(config: Config, workspace: Workspace, *, own: bool) -> Prompts:
    """The prompts of a workspace: its own templates count where its texts are known to be the person's."""
    root = workspace.roots[0] if workspace.roots else None
    return Prompts(
        language=config.prompts.language,
        workspace=root if own else None,
        untrusted=None if own else root,
        variables=_variables,
        usual=SystemVariables,
    )


def _variables() -> Variables:
    from daiku.team.templates import TEMPLATES  # when used

    return TEMPLATES

"""Templates that are no Jinja (`.txt`): each `{name}` of a known variable becomes its value, in one pass (X.21)."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HOLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill_literally(template: str, variables: Mapping[str, object]) -> str:
    """`template` with its holes filled. What a value holds is never looked at again, and braces that name no
    variable stay as they are: JSON in a prompt needs no escapes."""
    return _HOLE.sub(lambda hole: str(variables[hole[1]]) if hole[1] in variables else hole[0], template)

"""The router that the settings ask for."""

from __future__ import annotations

from daiku.core.ports import Router
from daiku.settings.config import RouterSettings


def configured_router(settings: RouterSettings) -> Router | None:
    """What `[router]` of the settings sets up: rules, before them a light model where one is named; None where
    nothing is. The patterns were compiled when the settings were read."""
    if settings.model:
        from daiku.routing.model import LLMRouter  # when used

        return LLMRouter(settings.model, rules=settings.rules)
    if not settings.rules:
        return None
    from daiku.routing.rules import RuleRouter  # when used

    return RuleRouter(settings.rules)

"""Build the router from the settings."""

from __future__ import annotations

from daiku.run.rules.outside import Router
from daiku.settings.config import RouterSettings


def build_router(settings: RouterSettings) -> Router | None:
    """Return the router of the `[router]` settings: rules, after a light model if one is named; None if unset."""
    if settings.model:
        from daiku.team.routing.model import LLMRouter  # when used

        return LLMRouter(settings.model, rules=settings.rules)
    if not settings.rules:
        return None
    from daiku.team.routing.rule_router import RuleRouter  # when used

    return RuleRouter(settings.rules)

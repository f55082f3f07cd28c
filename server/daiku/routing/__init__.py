"""Routers: which agents a request is for, by rules or by a light model."""

from daiku.routing.model import LLMRouter
from daiku.routing.rules import RuleRouter

__all__ = ["LLMRouter", "RuleRouter"]

"""Guardrails: what may go into a run, be called in it and come out of it; by schema, pattern, function, tokens."""

from daiku.guardrails.guardrail import Guardrail
from daiku.guardrails.secrets import SecretsGuard
from daiku.guardrails.similarity import SimilarityGuard
from daiku.guardrails.tokens import TokenGuard

__all__ = ["Guardrail", "SecretsGuard", "SimilarityGuard", "TokenGuard"]

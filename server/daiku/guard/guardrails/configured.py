"""Guardrails that the settings configure for every run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from daiku.run.rules.outside import Guard
from daiku.settings.config import GuardrailSettings


def build_guardrails(
    settings: GuardrailSettings, roots: tuple[Path, ...], secrets: Iterable[str]
) -> tuple[Guard, ...]:
    """Build the guardrails of `[guardrails]` in the settings for the workspace of `roots`.

    Similarity is checked if the settings name reference files. Possible secrets, including `secrets`, cause a
    warning. Without a workspace there are only patterns.
    """
    patterns: tuple[Guard, ...] = ()
    if settings.regex_blocks:
        from daiku.guard.guardrails.guardrail import Guardrail  # when used

        patterns = (Guardrail(regex_blocks=settings.regex_blocks),)
    if not roots:
        return patterns
    from daiku.guard.guardrails.secrets import SecretsGuard  # when used

    guardrails = (*patterns, SecretsGuard(secrets=secrets, action="warn"))
    if not settings.references:
        return guardrails
    from daiku.guard.guardrails.references import WorkspaceReferences  # when used
    from daiku.guard.guardrails.similarity import SimilarityGuard  # when used

    warn, block = settings.similarity_warn, settings.similarity_block
    references = WorkspaceReferences(roots, settings.references)
    return (*guardrails, SimilarityGuard(references=references, warn=warn, block=block))

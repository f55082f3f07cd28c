"""The guardrails that the settings ask for, in every run of the product."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from daiku.run.rules.outside import Guard
from daiku.settings.config import GuardrailSettings


def configured_guardrails(
    settings: GuardrailSettings, roots: tuple[Path, ...], secrets: Iterable[str]
) -> tuple[Guard, ...]:
    """What `[guardrails]` of the settings sets up for the workspace of `roots`; its patterns were compiled when the
    settings were read. Similarity is judged where the workspace has reference files;
    something like a secret, `secrets` above all, is warned of. Without a
    workspace there are only patterns."""
    patterns: tuple[Guard, ...] = ()
    if settings.regex_blocks:
        from daiku.guard.guardrails.guardrail import Guardrail  # when used

        patterns = (Guardrail(regex_blocks=settings.regex_blocks),)
    if not roots:
        return patterns
    from daiku.guard.guardrails.secrets import SecretsGuard  # when used

    always = (*patterns, SecretsGuard(secrets=secrets, action="warn"))
    if not settings.references:
        return always
    from daiku.guard.guardrails.references import WorkspaceReferences  # when used
    from daiku.guard.guardrails.similarity import SimilarityGuard  # when used

    warn, most = settings.similarity_warn, settings.similarity_block
    known = WorkspaceReferences(roots, settings.references)
    return (*always, SimilarityGuard(references=known, warn=warn, block=most))

"""The guardrails that the settings ask for, in every run of the product."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from daiku.core.ports import Guard
from daiku.guardrails.guardrail import Guardrail
from daiku.guardrails.references import WorkspaceReferences
from daiku.guardrails.secrets import SecretsGuard
from daiku.guardrails.similarity import SimilarityGuard
from daiku.settings.config import GuardrailSettings


def configured_guardrails(
    settings: GuardrailSettings, roots: tuple[Path, ...], secrets: Iterable[str]
) -> tuple[Guard, ...]:
    """What `[guardrails]` of the settings sets up for the workspace of `roots`; its patterns were compiled when the
    settings were read. Similarity is judged where the workspace has reference files;
    something like a secret, `secrets` above all, is warned of. Without a
    workspace there are only patterns."""
    patterns = (Guardrail(regex_blocks=settings.regex_blocks),) if settings.regex_blocks else ()
    if not roots:
        return patterns
    always = (*patterns, SecretsGuard(secrets=secrets, action="warn"))
    if not settings.references:
        return always
    warn, most = settings.similarity_warn, settings.similarity_block
    known = WorkspaceReferences(roots, settings.references)
    return (*always, SimilarityGuard(references=known, warn=warn, block=most))

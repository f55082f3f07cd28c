"""A model service as failures name it: its label, its address, how its key is set, and text without its secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LONGEST_MESSAGE = 600
_KEY = re.compile(r"\b(?:sk|gsk|xai|pplx|AIza)[-_]?[A-Za-z0-9_-]{16,}")


@dataclass(frozen=True, slots=True)
class Service:
    """Who failed, in words for a person: `label` ("LM Studio"), where it is, how to mend it.

    `secrets` are the keys sent to it; no message ever shows them.
    """

    name: str
    label: str
    address: str = ""
    key_env: str = ""
    start_hint: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def key_hint(self) -> str:
        if not self.key_env:
            return f"Check the key of {self.label}: run “Daiku: Set API Key”."
        return f"Set {self.key_env}, or run “Daiku: Set API Key” for {self.label}."

    def clean(self, text: str) -> str:
        """`text` on one line, shortened, without keys."""
        for secret in self.secrets:
            if secret:
                text = text.replace(secret, "***")
        text = " ".join(_KEY.sub("***", text).split())
        return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"

"""A model service as error messages describe it: its label, its address, how its key is set."""

from __future__ import annotations

from daiku.dataclass import dataclass, field
from daiku.models.transport.addresses import public_address
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text

LONGEST_MESSAGE = 600
_KEY = lazy(r"\b(?:sk|gsk|xai|pplx|AIza)[-_]?[A-Za-z0-9_-]{16,}")


@dataclass(frozen=True, slots=True)
class Service:
    """Who failed, in words for a person: `label` (a name such as "LM Studio", or a `Text`), where it is, how to
    mend it.

    `secrets` are the keys sent to it; no message ever shows them.
    """

    name: str
    label: str
    address: str = ""
    key_env: str = ""
    start_hint: Text = NO_TEXT
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def key_hint(self) -> Text:
        if not self.key_env:
            return text("llm.check_key", service=self.label)
        return text("llm.set_key_of", name=self.key_env, service=self.label)

    @property
    def place(self) -> str:
        """The address as messages show it: without credentials."""
        return public_address(self.address)

    def clean(self, words: str) -> str:
        """`words` on one line, shortened, without keys."""
        for secret in self.secrets:
            if secret:
                words = words.replace(secret, "***")
        words = " ".join(_KEY.sub("***", words).split())
        return words if len(words) <= LONGEST_MESSAGE else words[: LONGEST_MESSAGE - 1] + "…"

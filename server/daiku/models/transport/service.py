"""Description of a model service for error messages: label, address, and key setup."""

from __future__ import annotations

from daiku.dataclass import dataclass, field
from daiku.models.transport.addresses import strip_credentials
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import NO_TEXT, Text, text

MAX_MESSAGE_CHARACTERS = 600
"""Maximum characters of a vendor message."""
_KEY = lazy(r"\b(?:sk|gsk|xai|pplx|AIza)[-_]?[A-Za-z0-9_-]{16,}")


@dataclass(frozen=True, slots=True)
class Service:
    """Model service as error messages describe it.

    `label` (a name such as "LM Studio", or a `Text`), address, and setup hints.
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
        """Address without credentials, for messages."""
        return strip_credentials(self.address)

    def clean(self, message: str) -> str:
        """Return `message` on one line, truncated, with keys masked."""
        for secret in self.secrets:
            if secret:
                message = message.replace(secret, "***")
        message = " ".join(_KEY.sub("***", message).split())
        return (
            message if len(message) <= MAX_MESSAGE_CHARACTERS else message[: MAX_MESSAGE_CHARACTERS - 1] + "…"
        )

"""A guardrail's verdict on an input or an output: pass, warn, or block, with a reason."""

from typing import Literal, TypedDict

GuardrailAction = Literal["pass", "warn", "block"]


class GuardrailAnswer(TypedDict):
    """A guardrail's verdict on data (R1.50, R1.51); `reason` is empty for `pass`."""

    action: GuardrailAction
    reason: str

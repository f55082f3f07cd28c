"""A guardrail's answer about an input or an output: pass, warn or block, and why."""

from typing import Literal, TypedDict

GuardrailAction = Literal["pass", "warn", "block"]


class GuardrailAnswer(TypedDict):
    """What a guardrail says of some data (R1.50, R1.51); `reason` is empty where it passes."""

    action: GuardrailAction
    reason: str

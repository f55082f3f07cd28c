"""The worst case of a model call before it is made: tokens of the prompt and of the longest answer, and their prices."""

from __future__ import annotations

from daiku.core.run.budget import Quote
from daiku.domain.config import Price
from daiku.domain.messages import ModelRequest, Usage
from daiku.llm.catalogue import cost, find_model
from daiku.llm.tokens import estimate_request

USUAL_OUTPUT = 16_384
"""Tokens of output that are reckoned with where neither the model's limit nor its window is known."""
MARGIN = 1.1
"""The estimate of a prompt may be this much too small."""


def quote_call(request: ModelRequest, prices: dict[str, Price], context: int) -> Quote:
    """The worst case of `request` at its model. `prices` are the settings', `context` the window."""
    prompt = int(estimate_request(request) * MARGIN) + 1
    entry = find_model(request.model)
    longest = entry.max_output if entry is not None else 0
    room = max(context - prompt, 0) if context else 0
    output = request.max_output or min((n for n in (longest, room) if n), default=USUAL_OUTPUT)
    return Quote(prompt, output, *_costs(request.model, prompt, prices))


def _costs(model: str, prompt: int, prices: dict[str, Price]) -> tuple[float | None, float | None]:
    entry = find_model(model)
    written = prompt if entry is not None and entry.provider == "anthropic" else 0
    asked = cost(Usage(prompt_tokens=prompt), model, prices, written=written)
    answered = cost(Usage(prompt_tokens=prompt, completion_tokens=1_000_000), model, prices, written=written)
    if asked is None or answered is None:
        return None, None
    return asked, (answered - asked) / 1_000_000

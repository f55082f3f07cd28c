"""How models mark what they only think: the marks of open models' templates and the channels of harmony."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy

_TAGS = ("think", "thinking", "thought", "reasoning", "seed:think", "antthinking")
PAIRS: dict[str, str] = {
    **{f"<{tag}>": f"</{tag}>" for tag in _TAGS},
    "[think]": "[/think]",
    "<|start_thinking|>": "<|end_thinking|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|channel>thought": "<channel|>",
    "◁think▷": "◁/think▷",
}
"""How thoughts open and close in the templates of open models, in lower case."""
CLOSERS = tuple(PAIRS.values())
ANSWERS: dict[str, tuple[str, ...]] = {
    "<|start_response|>": ("<|end_response|>",),
    "<|begin_of_solution|>": ("<|end_of_solution|>",),
}
"""Marks around an answer: they say nothing."""
HARMONY = ("<|start|>assistant", "<|channel|>")
FIRST_OF_MARKS = frozenset(mark[0] for mark in (*PAIRS, *ANSWERS, *CLOSERS, *HARMONY))
HARMONY_ENDS = ("<|end|>", "<|return|>")
MESSAGE = "<|message|>"
LONGEST_HEAD = 200
"""Characters between `<|channel|>` and `<|message|>` at most."""
CHANNEL_ENDS = lazy(r"<\|(?:end|start|channel|return|call)\|>")

IN_LINE = lazy(r"[<\[◁](?:(?<!\[)|(?=/|$))")
"""What may begin a mark within a line of an answer; at the start of one there are more."""
LAST_MARK = lazy(r"[<\[◁][^<\[◁\n]{0,30}$")
ARGUMENTS = lazy(r"<(/?)(?:[a-z]+:)?(?:tool_call|function_calls|function|invoke|parameter|arg_value)\b")
"""Tags of calls: between them stand arguments, the text of a file for example."""
CLOSER_PATTERNS = {closer: lazy(re.escape(closer), re.IGNORECASE) for closer in CLOSERS}
CLOSES_LINE = lazy(rf"(?:{'|'.join(map(re.escape, CLOSERS))})(?=[ \t\r]*$)", re.IGNORECASE)
ANY_MARK = lazy("|".join(map(re.escape, (*PAIRS, *ANSWERS, *CLOSERS, *HARMONY))), re.IGNORECASE)

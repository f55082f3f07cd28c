"""Calls without arguments: every form, with an empty object, with blanks in it, and with nothing at all."""

from __future__ import annotations

import json

from daiku.domain.messages import AssistantMessage
from daiku.domain.tools import ToolSpec
from daiku.models.rules.textcalls.codecs import FormatProblem, decode
from daiku.models.rules.textcalls.humantext import HumanText
from daiku.models.rules.textcalls.parsed_calls import OfferedTools
from daiku.texts.text import Text
from tests.cases import for_each
from tests.core.textcalls.callforms import FORMS, TOOLS, A, N

STATUS = ToolSpec(
    name="git/status",
    description="Show the status.",
    parameters={"type": "object", "properties": {}},
    effect="read",
)
LOG = ToolSpec(
    name="git/log",
    description="Show the log.",
    parameters={"type": "object", "properties": {"limit": {"type": "integer"}}},
    effect="read",
)
ALL = (*TOOLS, STATUS, LOG)
S = STATUS.name
F = "```"
WITH_OBJECT = [name for name, form in FORMS.items() if A in form or json.dumps(A) in form]
DEEPSEEK = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
DEEPSEEK_END = "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
KIMI = "<|tool_calls_section_begin|><|tool_call_begin|>"
KIMI_END = "<|tool_call_end|><|tool_calls_section_end|>"
ARGUMENT = "<|tool_call_argument_begin|>"

CLOSED = {
    "hermes": f'<tool_call>\n{{"name": "{S}"}}\n</tool_call>',
    "hermes, null": f'<tool_call>\n{{"name": "{S}", "arguments": null}}\n</tool_call>',
    "name in a tag": f"<tool_call>{S}\n</tool_call>",
    "qwen3 coder": f"<tool_call>\n<function={S}>\n</function>\n</tool_call>",
    "llama 3.1": f"<function={S}></function>",
    "mistral": f'[TOOL_CALLS] [{{"name": "{S}"}}]',
    "mistral v11": f"[TOOL_CALLS]{S}</s>",
    "mistral v11, id": f"[TOOL_CALLS]{S}[CALL_ID]abcdefghi[ARGS]</s>",
    "mistral v13": f"[TOOL_CALLS]{S}[ARGS]</s>",
    "deepseek v3": f"{DEEPSEEK}function<｜tool▁sep｜>{S}\n{F}json\n\n{F}{DEEPSEEK_END}",
    "deepseek v3, no block": f"{DEEPSEEK}function<｜tool▁sep｜>{S}{DEEPSEEK_END}",
    "deepseek v3.1": f"{DEEPSEEK}{S}<｜tool▁sep｜>{DEEPSEEK_END}",
    "deepseek v3.1, no mark": f"{DEEPSEEK}{S}{DEEPSEEK_END}",
    "deepseek v3.2": f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="{S}">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "kimi": f"{KIMI}functions.{S}:0{ARGUMENT}{KIMI_END}",
    "kimi, blanks": f"{KIMI}functions.{S}:0{ARGUMENT} \n{KIMI_END}",
    "kimi, no mark": f"{KIMI}functions.{S}:0{KIMI_END}",
    "minimax": f'<minimax:tool_call>\n<invoke name="{S}">\n</invoke>\n</minimax:tool_call>',
    "harmony": f"<|channel|>commentary to=functions.{S} <|constrain|>json<|message|><|call|>",
    "granite": f'<|tool_call|>[{{"name": "{S}"}}]',
    "functools": f'functools[{{"name": "{S}"}}]',
    "openai": f'{{"tool_calls": [{{"type": "function", "function": {{"name": "{S}"}}}}]}}',
    "python": "[git_status()]",
    "python in a block": f"{F}tool_code\nprint(git.status())\n{F}",
    "cline": "<git_status>\n</git_status>",
}
"""A call of a tool with no arguments written at all; a mark says that it is complete."""
OPEN = {
    "mistral v11": f"[TOOL_CALLS]{S}",
    "mistral v13": f"[TOOL_CALLS]{S}[ARGS]",
    "harmony": f"<|channel|>commentary to=functions.{S} <|constrain|>json<|message|>",
    "kimi": f"{KIMI}functions.{S}:0{ARGUMENT}",
    "deepseek v3.1": f"{DEEPSEEK}{S}<｜tool▁sep｜>",
    "react": f"Action: {S}\nAction Input:",
    "react, None": f"Action: {S}\nAction Input: None",
}
"""The same without a closing mark, as servers send it that drop the token which ends a reply."""


def calls_of(reply: str) -> list[tuple[str, object]]:
    found = decode(AssistantMessage(text=Text(reply)), "native", tools=ALL)
    assert isinstance(found, AssistantMessage), found.problem
    return [(call.tool, call.args) for call in found.calls]


@for_each("empty", ["{}", "{ }", "{\n}", "{\n  \n}"])
@for_each("name", WITH_OBJECT)
def test_an_empty_object_is_no_arguments(name: str, empty: str) -> None:
    form = FORMS[name].replace(json.dumps(A), json.dumps(empty)).replace(A, empty)
    assert calls_of(form) == [(N, {})] * (2 if "two" in name or name.startswith(("14 ", "17 ")) else 1)


@for_each("name", CLOSED)
def test_a_closed_call_with_nothing_is_no_arguments(name: str) -> None:
    assert calls_of(CLOSED[name]) == [(S, {})]
    log = CLOSED[name].replace(S, LOG.name).replace("git_status", "git_log").replace("git.st", "git.l")
    if "print" not in log:
        assert calls_of(log) == [(LOG.name, {})]


@for_each("name", OPEN)
def test_a_call_that_may_be_cut_counts_only_for_a_tool_without_parameters(name: str) -> None:
    assert calls_of(OPEN[name]) == [(S, {})]
    if "None" not in name:
        cut = decode(AssistantMessage(text=Text(OPEN[name].replace(S, LOG.name))), "native", tools=ALL)
        assert isinstance(cut, FormatProblem) or not cut.calls


@for_each(
    "reply",
    [
        f"[TOOL_CALLS]{S}[TOOL_CALLS]{LOG.name}",
        f"[TOOL_CALLS]{LOG.name}[ARGS][TOOL_CALLS]{S}[ARGS]{{}}",
        f"{KIMI}functions.{S}:0{ARGUMENT}{{}}<|tool_call_end|><|tool_call_begin|>{LOG.name}:1{ARGUMENT}{{}}{KIMI_END}",
        f"{DEEPSEEK}{S}<｜tool▁sep｜>{{}}<｜tool▁call▁end｜><｜tool▁call▁begin｜>{LOG.name}<｜tool▁sep｜>{DEEPSEEK_END}",
        f"<tool_call><function={S}>{{}}</function><function={LOG.name}></function></tool_call>",
    ],
)
def test_calls_without_arguments_stand_side_by_side(reply: str) -> None:
    names = [name for name, _ in calls_of(reply + "</s>")]
    assert sorted(names) == [LOG.name, S]


@for_each(
    "reply", ['{"name": "git/status"}', '{"name": "git/status", "type": "function"}', "{}", "[]", "{ }"]
)
def test_a_name_without_a_mark_of_calls_is_data(reply: str) -> None:
    assert not calls_of(reply)


@for_each("name", [*CLOSED])
def test_no_markup_of_such_a_call_is_shown(name: str) -> None:
    if name in ("cline", "python in a block"):
        return
    shown = HumanText(OfferedTools(ALL), text_protocol=False)
    assert not (shown.feed(CLOSED[name]) + shown.unshown_text("")).strip()

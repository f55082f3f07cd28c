"""The forms in which open models write calls into their text; each is one call of files/read unless it says more."""

from __future__ import annotations

import json
from typing import Any

from daiku.domain.tools import ToolSpec

N = "files/read"
A = '{"path":"src/a.py"}'
C = f'{{"name":"{N}","arguments":{A}}}'
P = f'{{"name":"{N}","parameters":{A}}}'
READ = ToolSpec(
    name=N,
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}},
    effect="read",
)
DELETE = ToolSpec(
    name="files/delete",
    description="Delete a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
    effect="edit",
)
TOOLS = (READ, DELETE)
ONE: tuple[tuple[str, dict[str, Any]], ...] = ((N, {"path": "src/a.py"}),)
TWO = (*ONE, *ONE)
_FENCE = "```"
_XML = f"<function={N}>\n<parameter=path>\nsrc/a.py\n</parameter>\n</function>"
_DS = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
_DS_END = "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"

FORMS: dict[str, str] = {
    "1 hermes": f"<tool_call>\n{C}\n</tool_call>",
    "2 hermes, two": f"<tool_call>\n{C}\n</tool_call>\n<tool_call>\n{C}\n</tool_call>",
    "3 prose before, arguments as text": f'I will look.\n<tool_call>\n{{"name":"{N}","arguments":{json.dumps(A)}}}\n</tool_call>',
    "4 tag not closed": f"<tool_call>\n{C}",
    "5 double braces": f"<tool_call>\n{{{C}}}\n</tool_call>",
    "6 a thought before": f"<think>\nI could <tool_call>{C}</tool_call>.\n</think>\n<tool_call>\n{C}\n</tool_call>",
    "7 qwen3 coder": f"<tool_call>\n{_XML}\n</tool_call>",
    "8 parameter not closed": f"<tool_call>\n<function={N}>\n<parameter=path>\nsrc/a.py\n</function>\n</tool_call>",
    "9 prose with a brace before": f"The dict {{x}} is odd.\n<tool_call>\n{_XML}\n</tool_call>",
    "10 llama 3.1": f"<function={N}>{A}</function>",
    "11 bare": P,
    "12 python tag": f"<|python_tag|>{P}",
    "13 python tag with type": f'<|python_tag|>{{"type":"function","name":"{N}","parameters":{A}}}<|eom_id|>',
    "14 two, semicolon": f"{P}; {P}",
    "15 llama 4": '[files_read(path="src/a.py")]',
    "16 mistral": f"[TOOL_CALLS] [{C}]",
    "17 mistral, two": f"[TOOL_CALLS] [{C}, {C}]",
    "18 mistral, name": f"[TOOL_CALLS]{N}{A}",
    "19 mistral, args": f"[TOOL_CALLS]{N}[ARGS]{A}",
    "20 deepseek v3": f"{_DS}function<｜tool▁sep｜>{N}\n{_FENCE}json\n{A}\n{_FENCE}{_DS_END}",
    "21 deepseek v3.1": f"{_DS}{N}<｜tool▁sep｜>{A}{_DS_END}",
    "22 deepseek v3.2": f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="{N}">\n<｜DSML｜parameter name="path" string="true">src/a.py</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "23 glm": f"<tool_call>{N}\n<arg_key>path</arg_key>\n<arg_value>src/a.py</arg_value>\n</tool_call>",
    "24 kimi": f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{N}:0<|tool_call_argument_begin|>{A}<|tool_call_end|><|tool_calls_section_end|>",
    "25 minimax": f'<minimax:tool_call>\n<invoke name="{N}">\n<parameter name="path">src/a.py</parameter>\n</invoke>\n</minimax:tool_call>',
    "26 invoke": f'<function_calls>\n<invoke name="{N}">\n<parameter name="path">src/a.py</parameter>\n</invoke>\n</function_calls>',
    "27 harmony": f"<|channel|>commentary to=functions.{N} <|constrain|>json<|message|>{A}<|call|>",
    "28 granite": f"<|tool_call|>[{C}]",
    "29 phi functools": f"functools[{C}]",
    "30 phi": f"<|tool_call|>[{C}]<|/tool_call|>",
    "31 command r": f'Action: {_FENCE}json\n[{{"tool_name":"{N}","parameters":{A}}}]\n{_FENCE}',
    "32 command r7b": f'<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>[{{"tool_call_id":"0","tool_name":"{N}","parameters":{A}}}]<|END_ACTION|>',
    "33 gemma": f'{_FENCE}tool_code\nprint(files.read(path="src/a.py"))\n{_FENCE}',
    "34 react": f"Thought: I look.\nAction: {N}\nAction Input: {A}",
    "35 langchain": f'{_FENCE}json\n{{"action":"{N}","action_input":{A}}}\n{_FENCE}',
    "36 openai": f'{{"tool_calls":[{{"id":"c1","type":"function","function":{{"name":"{N}","arguments":{json.dumps(A)}}}}}]}}',
    "37 function": f'{{"type":"function","function":{C}}}',
    "38 prose and a block": f"I will look.\n{_FENCE}json\n{C}\n{_FENCE}",
    "39 block of a call": f"{_FENCE}tool_call\n{C}\n{_FENCE}",
    "40 cline": "<read_file>\n<path>src/a.py</path>\n</read_file>",
    "41 internlm": f"<|action_start|><|plugin|>\n{P}<|action_end|>",
    "42 xlam": f"[{C}]",
    "43 hunyuan": f"<tool_calls>[{C}]</tool_calls>",
    "44 nemotron": f"<TOOLCALL>[{C}]</TOOLCALL>",
    "45 seed": f"<seed:tool_call>\n<function={N}>\n<parameter=path>src/a.py</parameter>\n</function>\n</seed:tool_call>",
    # kin of these
    "tools tag": f"<tools>\n{C}\n</tools>",
    "tools tag, two": f"<tools>{C}{C}</tools>",
    "tool tag": f"<tool>{C}</tool>",
    "response tag": f"<response>\n{C}\n</response>",
    "json tag": f"<json>\n{C}\n</json>",
    "name as a tag": f"<files__read>{A}</files__read>",
    "name as a tag, lines": f"I will look.\n<files_read>\n{A}\n</files_read>",
    "two functions in one tag": f"<tool_call>\n{_XML}\n{_XML}\n</tool_call>",
    "deepseek, two": f"{_DS}{N}<｜tool▁sep｜>{A}<｜tool▁call▁end｜><｜tool▁call▁begin｜>{N}<｜tool▁sep｜>{A}{_DS_END}",
    "mistral, two names": f"[TOOL_CALLS]{N}[ARGS]{A}[TOOL_CALLS]{N}[ARGS]{A}",
    "kimi, two": f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{N}:0<|tool_call_argument_begin|>{A}<|tool_call_end|><|tool_call_begin|>functions.{N}:1<|tool_call_argument_begin|>{A}<|tool_call_end|><|tool_calls_section_end|>",
    "llama 4, two": '[files_read(path="src/a.py"), files.read(path="src/a.py")]',
    "lines of JSON, two": f"{C}\n{C}",
    "blocks, two": f"{_FENCE}json\n{C}\n{_FENCE}\n\n{_FENCE}json\n{C}\n{_FENCE}",
    "lfm": '<|tool_call_start|>[files_read(path="src/a.py")]<|tool_call_end|>',
    "almost JSON": f"<tool_call>\n{{'name': '{N}', 'arguments': {{'path': 'src/a.py'}}}}\n</tool_call>",
    "invoke without a tag around": f'<invoke name="{N}">\n<parameter name="path">src/a.py</parameter>\n</invoke>',
    "behind a sentence": f"I look.<tool_call>{C}</tool_call>",
    "harmony with start": f"<|channel|>analysis<|message|>hm {C}<|end|><|start|>assistant<|channel|>commentary to=functions.{N} <|constrain|>json<|message|>{A}<|call|>",
}  # fmt: skip
_TWICE = ("2 ", "14 ", "17 ")


def expected(name: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The calls of the form `name`."""
    return TWO if name.startswith(_TWICE) or "two" in name else ONE

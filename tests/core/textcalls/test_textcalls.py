"""Calls in the text of a reply: every form is read where it stands at the end, nothing that is quoted is."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.config import ToolProtocol
from daiku.domain.messages import AssistantMessage
from daiku.models.rules.replies.thoughts import ThoughtSplitter, split_thoughts
from daiku.models.rules.textcalls.codecs import FormatProblem, decode, has_dropped
from daiku.models.rules.textcalls.humantext import HumanText
from daiku.models.rules.textcalls.parsed_calls import OfferedTools
from daiku.texts.text import Text
from tests.cases import for_each
from tests.core.textcalls.callforms import FORMS, TOOLS, A, C, N, expected
from tests.timing import cpu_seconds

PROTOCOLS: tuple[ToolProtocol, ...] = ("native", "action_list", "command")


def read(reply: str, protocol: ToolProtocol = "native", **more: object) -> AssistantMessage | FormatProblem:
    answer = split_thoughts(reply).answer
    return decode(AssistantMessage(text=answer), protocol, tools=TOOLS, **more)  # pyright: ignore[reportArgumentType]  # named by the tests


def calls_of(found: AssistantMessage | FormatProblem) -> tuple[tuple[str, object], ...]:
    assert isinstance(found, AssistantMessage), found
    return tuple((call.tool, call.args) for call in found.calls)


@for_each("protocol", PROTOCOLS)
@for_each("name", FORMS)
def test_every_form_of_a_call_is_read(name: str, protocol: ToolProtocol) -> None:
    found = read(FORMS[name], protocol)
    assert calls_of(found) == expected(name)
    assert isinstance(found, AssistantMessage)
    assert not any(mark in found.text.replace("{x}", "") for mark in "<[{`")


DELETE = '{"name": "files/delete", "arguments": {"path": "a.txt"}}'
LIST = '{"comment": "", "actions": [{"operation": "files/delete", "args": {"path": "a.txt"}}]}'
COMMAND = '{"command": {"tool": "files/delete", "args": {"path": "a.txt"}}}'
XML = f"<tool_call>{DELETE}</tool_call>"
QUOTED = {
    "a quotation": "> {}\n\nI will not do that.",
    "a quotation of more lines": "The page says:\n\n> Do this:\n> {}\n",
    "code in the line": "An attacker wrote `{}`. I ignored it.",
    "double ticks": "An attacker wrote ``{}``. I ignored it.",
    "code in the line, at the end": "An attacker wrote `{}`",
    "a comment": "<!-- {} -->\nNothing to do.",
    "a comment that is not closed": "Nothing to do. <!-- {}",
    "within a sentence": "An attacker wrote {} and I ignored it.",
    "an example": "Example of my format: {}. Now the answer: nothing to do.",
    "in quotes": 'It said "{}", no more.',
    "a block of another language": "So it looks:\n```xml\n{}\n```",
    "a block within a block": "````md\n```json\n{}\n```\n````",
    "a list item": "- never send {} again",
    "a table": "| call | {} |\n| - | - |",
}
THINGS = {
    "list": LIST, "command": COMMAND, "call": DELETE, "tag": XML, "bare": f"[{DELETE}]",
    "function": "<function=files/delete><parameter=path>a.txt</parameter></function>",
    "dsml": '<｜DSML｜function_calls><｜DSML｜invoke name="files/delete"><｜DSML｜parameter name="path" string="true">a.txt</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>',
    "python": '[files_delete(path="a.txt")]', "openai": f'{{"tool_calls": [{{"function": {DELETE}}}]}}',
    "mistral": f"[TOOL_CALLS][{DELETE}]",
}  # fmt: skip


@for_each("protocol", PROTOCOLS)
@for_each("thing", THINGS)
@for_each("frame", QUOTED)
def test_what_is_quoted_is_not_carried_out(frame: str, thing: str, protocol: ToolProtocol) -> None:
    reply = QUOTED[frame].replace("{}", THINGS[thing])
    assert read(reply, protocol) == AssistantMessage(text=Text(reply))


@for_each("protocol", PROTOCOLS)
@for_each("thing", THINGS)
@for_each(
    "frame",
    [
        "The page says:\n{}\nI will not do that.",
        "```json\n{}\n```\nThis is how it would be written.",
        "It says:\n\n{}\n\nBut no.\n\n" + f"<tool_call>{C}</tool_call>",
    ],
)
def test_what_may_be_an_example_is_asked_about_once_and_then_is_none(
    frame: str, thing: str, protocol: ToolProtocol
) -> None:
    reply = frame.replace("{}", THINGS[thing])
    found, again = read(reply, protocol), read(reply, protocol, again=True)
    assert isinstance(found, FormatProblem) or not any(c.tool == "files/delete" for c in found.calls)
    if "<tool_call>" not in frame:
        assert again == AssistantMessage(text=Text(reply))


ANSWERS = [
    "Der Wert ist in `a[0]`.",
    "It is a[0], then b{1}.",
    "[1] see docs",
    "[1]: https://example.org\n[x](y)",
    "Use {} for an empty dict.",
    "{} and [] are false.",
    "```python\nx = {'command': [1]}\n```",
    "So:\n```json\n{\"version\": 1, \"name\": \"x\"}\n```",
    'package.json:\n{"name": "x", "version": "1.0.0", "scripts": {"test": "jest"}}',
    '{"name": "x", "version": "1.0.0", "dependencies": {"a": "1"}}',
    'Then {"name":"deploy","arguments":{"to":"x"}} is sent.',
    'A rule:\n```json\n{"name":"eslint","parameters":{"quotes":"single"}}\n```',
    '```json\n{"type":"function","function":{"name":"files/read","parameters":{"type":"object","properties":{}}}}\n```',
    '```json\n{"name":"files/read","description":"Read.","parameters":{"type":"object","properties":{}}}\n```',
    'tasks.json needs {"command": "npm", "args": ["test"]} here.',
    '{"command": "npm", "args": ["test"]}',
    "The tag <tool_call> opens and </tool_call> closes.",
    "Action: none is needed.",
    "Done.",
    "if (x) { run(); }",
    "<html>\n<body>\n</body>\n</html>",
    "I read files/read and `files/delete`.",
    "files_read(path) is the function",
    "Observation: it rains.",
    '<json>\n{"version": 1}\n</json>',
    '<response>{"name": "x", "version": "1"}</response>',
    "<tools>\nhammer\n</tools>",
]  # fmt: skip


@for_each("protocol", PROTOCOLS)
@for_each("reply", ANSWERS)
def test_prose_with_brackets_is_an_answer(reply: str, protocol: ToolProtocol) -> None:
    assert read(reply, protocol) == AssistantMessage(text=Text(reply))


RESULTS = [
    "previous_output (ok):\n```\nMade b.txt\n```",
    "previous_command:\n```json\n{}\n```\nprevious_output (ok):\nfine",
    "<tool_response>\nMade it.\n</tool_response>",
    "Observation: Made it.",
    "[TOOL_RESULTS] fine [/TOOL_RESULTS]",
    "<|start|>functions.files/read to=assistant<|channel|>commentary<|message|>fine<|end|>",
    "<|tool_response|>fine",
    "<function_results>\nfine\n</function_results>",
    "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>fine",
    "```tool_output\nfine\n```",
    "<|im_start|>tool\nfine",
]
AFTER = [
    "",
    "\nIt is done.",
    f"\n<tool_call>{DELETE}</tool_call>",
    '\n{"done": true, "comment": "I wrote it."}',
]


@pytest.mark.slow  # a sweep
@for_each("protocol", PROTOCOLS)
@for_each("result", RESULTS)
@for_each("after", AFTER)
@for_each("name", ["1 hermes", "11 bare", "34 react", "27 harmony", "38 prose and a block", "2 hermes, two"])
def test_an_invented_result_ends_the_reading(
    name: str, after: str, result: str, protocol: ToolProtocol
) -> None:
    found = read(f"{FORMS[name]}\n{result}{after}", protocol)
    assert calls_of(found) == expected(name)
    assert isinstance(found, AssistantMessage)
    assert "fine" not in found.text
    assert has_dropped(found)


@for_each("protocol", ["action_list", "command"])
@for_each("own", [LIST, COMMAND])
@for_each("end", ['{"done": true, "comment": "I wrote it."}', '{"actions": [], "comment": "I wrote it."}'])
def test_an_end_behind_an_unanswered_call_ends_nothing(own: str, end: str, protocol: ToolProtocol) -> None:
    for between in ("\n", " ", "\nprevious_output (ok): Made b.txt\n"):
        found = read(own + between + end, protocol)
        assert calls_of(found) == (("files/delete", {"path": "a.txt"}),)
        assert isinstance(found, AssistantMessage)
        assert "I wrote it" not in found.text


@for_each("protocol", ["action_list", "command"])
def test_several_lists_are_carried_out_in_their_order(protocol: ToolProtocol) -> None:
    read_one = f'{{"actions": [{{"operation": "{N}", "args": {A}}}]}}'
    for between in ("\n", "; ", "\n\n"):
        found = read(f"{LIST}{between}{COMMAND}{between}{read_one}", protocol)
        assert [name for name, _ in calls_of(found)] == ["files/delete", "files/delete", N]


@for_each("protocol", PROTOCOLS)
def test_a_tool_that_there_is_not_is_told_only_where_a_call_is_meant(protocol: ToolProtocol) -> None:
    for unknown in (C.replace(N, "deploy"), f"<tool_call>{C.replace(N, 'deploy')}</tool_call>"):
        found = read(unknown, protocol)
        if protocol == "native":
            assert found == AssistantMessage(text=Text(unknown))
        else:
            assert [name for name, _ in calls_of(found)] == ["deploy"]


SPELLINGS = [
    "files/read",
    "files.read",
    "files__read",
    "files_read",
    "functions.files/read",
    "file_ops.read",
    "Files-Read",
]


@for_each("name", SPELLINGS)
def test_a_tool_is_known_by_any_spelling_of_its_name(name: str) -> None:
    assert calls_of(read(C.replace(N, name))) == ((N, {"path": "src/a.py"}),)


@pytest.mark.slow  # a sweep
@for_each("protocol", PROTOCOLS)
@for_each("name", [name for name in FORMS if "not closed" not in name])
def test_a_reply_that_breaks_off_anywhere_runs_nothing_but_whole_calls(
    name: str, protocol: ToolProtocol
) -> None:
    whole = expected(name)
    for cut in range(1, len(FORMS[name])):
        for finish in ("stop", "length"):
            found = read(FORMS[name][:cut], protocol, finish=finish)
            if isinstance(found, AssistantMessage) and found.calls:
                made = calls_of(found)
                assert made == whole[: len(made)], FORMS[name][:cut]


@for_each("protocol", ["action_list", "command"])
@for_each("reply", [
    json.dumps({"comment": "x", "actions": [{"operation": "files/read", "args": {"path": str(n)}} for n in range(3)]}),
    json.dumps({"actions": [{"operation": "files/read", "args": {"path": str(n)}} for n in range(3)], "comment": "x"}, indent=1),
    json.dumps([{"name": "files/read", "arguments": {"path": str(n)}} for n in range(3)]),
    "```json\n" + json.dumps({"actions": [{"operation": "files/delete", "args": {"path": str(n)}} for n in range(3)]}) + "\n```",
    "{'actions': [{'operation': 'files/read', 'args': {'path': '1'}}, {'operation': 'files/read', 'args': {}}]}",
])  # fmt: skip
def test_a_list_that_was_cut_is_not_carried_out(reply: str, protocol: ToolProtocol) -> None:
    body = reply.removesuffix("\n```")
    for cut in range(1, len(body)):
        for finish in ("stop", "length"):
            found = read(reply[:cut], protocol, finish=finish)
            assert isinstance(found, FormatProblem) or not found.calls, reply[:cut]


@for_each("reply", ["Done.", "All is written; nothing is left to do."])
def test_prose_ends_a_run_in_the_command_protocol_too(reply: str) -> None:
    assert read(reply, "command") == AssistantMessage(text=Text(reply))


def test_arguments_are_what_the_schema_says() -> None:
    xml = f"<function={N}>\n<parameter=path>\n12\n</parameter>\n<parameter=limit>\n12\n</parameter>\n</function>"
    assert calls_of(read(f"<tool_call>\n{xml}\n</tool_call>")) == ((N, {"path": "12", "limit": 12}),)
    text = "<html>\n\n  </p>\n```\nx < y\n"
    xml = f"<function={N}>\n<parameter=path>\n{text}\n</parameter>\n</function>"
    assert calls_of(read(f"<tool_call>\n{xml}\n</tool_call>")) == ((N, {"path": text}),)


def shown_of(pieces: list[str], protocol: ToolProtocol) -> tuple[str, AssistantMessage | FormatProblem]:
    """What a person sees of a reply that comes in `pieces`, and how it is read."""
    splitter, said, shown = (
        ThoughtSplitter(),
        HumanText(OfferedTools(TOOLS), text_protocol=protocol != "native"),
        "",
    )
    answer = ""
    for told in [*(told for piece in pieces for told in splitter.feed(piece)), *splitter.close()]:
        if told.kind == "answer":
            shown += said.feed(told.text)
            answer += told.text
    found = decode(AssistantMessage(text=Text(answer)), protocol, tools=TOOLS)
    return shown + (said.unshown_text(found.text) if isinstance(found, AssistantMessage) else ""), found


@pytest.mark.slow  # a sweep
@for_each("protocol", PROTOCOLS)
@for_each("name", FORMS)
def test_a_call_in_a_stream_cut_anywhere_is_read_and_its_markup_never_shown(
    name: str, protocol: ToolProtocol
) -> None:
    before = "One a[0] < b.\n\n" if FORMS[name].startswith("<tool_call>") else ""
    reply = before + FORMS[name]
    ways = [[reply], list(reply), *([reply[:at], reply[at:]] for at in range(1, len(reply)))]
    for way in ways:
        shown, found = shown_of(way, protocol)
        assert calls_of(found) == expected(name)
        assert isinstance(found, AssistantMessage)
        assert shown.strip() == found.text


@for_each("protocol", PROTOCOLS)
@for_each("reply", ANSWERS)
def test_an_answer_in_a_stream_cut_anywhere_is_shown_whole(reply: str, protocol: ToolProtocol) -> None:
    for way in ([reply], list(reply), *([reply[:at], reply[at:]] for at in range(1, len(reply)))):
        shown, _ = shown_of(way, protocol)
        assert shown == reply


def test_words_of_an_answer_are_shown_as_they_come() -> None:
    said = HumanText(OfferedTools(TOOLS), text_protocol=False)
    pieces = [
        "Hello",
        " a",
        "[0]",
        " < b",
        "\nMore",
        ":\n",
        "```py\n",
        "x = {",
        "1: 2}\n",
        "```\n",
        "Action: mend it",
        ".\n",
        "Now",
    ]
    assert [said.feed(piece) for piece in pieces][:6] == pieces[:6]
    assert said.unshown_text("".join(pieces)) == ""


marks = st.lists(
    st.sampled_from(
        [*(piece for form in FORMS.values() for piece in re.findall(r"[<\[{`][^<\[{`]*", form)),
         "\n", " ", "\\", '"', "{", "}}", "]", "```", "> ", "`", "<!--", "-->", "Observation:", "Action: files/read\n", "word",
         '{"done": true}', '{"actions": [', "functools[", "previous_output (ok):", "<tool_response>", "\ud7ff", "（"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(marks, st.sampled_from(PROTOCOLS), st.sampled_from(["stop", "length"]), st.booleans())
def test_whatever_is_written_is_read_or_told_to_be_unreadable(
    reply: str, protocol: ToolProtocol, finish: str, again: bool
) -> None:
    found = read(reply, protocol, finish=finish, again=again)
    assert isinstance(found, AssistantMessage) or found.problem
    said = HumanText(OfferedTools(TOOLS), text_protocol=protocol != "native")
    whole = said.feed(reply)
    pieces = HumanText(OfferedTools(TOOLS), text_protocol=protocol != "native")
    assert "".join(pieces.feed(letter) for letter in reply) == whole


@pytest.mark.slow  # a sweep
@for_each("protocol", PROTOCOLS)
def test_a_long_reply_is_read_in_time(protocol: ToolProtocol) -> None:
    for piece in (
        "<tool_call>",
        "{",
        '[{"name": ',
        "<function=a><parameter=b>",
        "```\n",
        "> x\n",
        "`a",
        "Action: a\n",
        f"{C}\n",
        "[TOOL_CALLS]",
        "<|channel|>commentary to=",
    ):
        reply = piece * (60_000 // len(piece))
        message = AssistantMessage(text=Text(reply))
        assert cpu_seconds(partial(decode, message, protocol, tools=TOOLS)) < 3, piece


@for_each(
    "piece",
    [
        "[TOOL_CALLS]",
        "<function=a><parameter=b>",
        "Action: files/read\nAction Input: {}\n",
        "<function=a></function>",
    ],
)
def test_a_reply_that_goes_round_in_circles_is_read_in_a_time_that_follows_its_length(piece: str) -> None:
    def seconds(length: int) -> float:
        message = AssistantMessage(text=Text(piece * (length // len(piece))))
        return cpu_seconds(lambda: decode(message, "native", tools=TOOLS))

    seconds(1_000)
    assert seconds(640_000) < 8 * max(seconds(160_000), 0.1)

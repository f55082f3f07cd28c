"""Calls that a server of an open model leaves in the text are carried out; makers' own services are taken at their word."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from daiku.domain.messages import AssistantMessage, ModelEvent, Reply, Restarted, UserMessage, mark_unreadable
from daiku.domain.tools import ToolSpec
from daiku.run.rules.calls.toolnames import wire_name
from daiku.texts.text import Text
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import build_builtin_tools
from tests.cases import for_each
from tests.core.textcalls.callforms import FORMS, TOOLS, C, expected
from tests.llm.doors import CHAT, DOORS, Door
from tests.llm.server import ModelServer, events
from tests.llm.talk import closing, request, result, text_of, user

OPEN = [door for door in DOORS if door.provider not in ("anthropic", "gemini")]
PROTOCOLS = ("native", "action_list", "command")
CUT_OFF = '<tool_call>\n{"name": "files/read", "arguments": {"pa'


async def hear(
    door: Door,
    server: ModelServer,
    *replies: list[str],
    protocol: str = "native",
    asked: tuple[object, ...] = (),
    finish: str = "stop",
) -> list[ModelEvent]:
    server.answer(door.path, *(door.says(pieces, finish) for pieces in replies))
    models, adapter = door.open(server, tool_protocol=protocol)
    messages = asked or (user(),)
    heard = [e async for e in adapter.stream(request(*messages, model=door.model, tools=TOOLS))]  # pyright: ignore[reportArgumentType]  # messages
    await models.aclose()
    return heard


def asked_of(server: ModelServer, door: Door) -> list[str]:
    return [each.body.decode() for each in server.asked if each.path.startswith(door.path)]


@pytest.mark.slow  # a sweep
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", FORMS)
async def test_every_form_is_one_request_and_its_markup_is_not_shown(
    name: str, protocol: str, model_server: ModelServer
) -> None:
    pieces = [FORMS[name][at : at + 3] for at in range(0, len(FORMS[name]), 3)]
    heard = await hear(DOORS[0], model_server, pieces, protocol=protocol)
    reply = closing(heard)
    assert tuple((call.tool, call.args) for call in reply.message.calls) == expected(name)
    assert reply.finish == "tool_calls"
    assert text_of(heard).strip() == reply.message.text
    assert not any(mark in text_of(heard).replace("{x}", "") for mark in "<[{`")
    assert len(model_server.asked) == 1


@pytest.mark.parametrize("door", DOORS, ids=str)
@pytest.mark.parametrize("text", [f"I look.\n<tool_call>\n{C}\n</tool_call>", C])
async def test_natively_only_servers_of_open_models_leave_calls_in_the_text(
    door: Door, text: str, model_server: ModelServer
) -> None:
    message = closing(await hear(door, model_server, [text])).message
    if door in OPEN:
        assert [call.tool for call in message.calls] == ["files/read"]
    else:
        assert message == AssistantMessage(text=Text(text), opaque=message.opaque)


@pytest.mark.parametrize("protocol", PROTOCOLS[1:])
async def test_a_model_without_tools_of_its_own_is_sent_their_schemas_in_its_prompt(
    protocol: str, model_server: ModelServer
) -> None:
    """R1.39: what the registry writes for prompts is in the prompt that is really sent."""
    tools = ToolRegistry(build_builtin_tools())
    door = DOORS[0]
    model_server.answer(door.path, door.says(["Good."], "stop"))
    models, adapter = door.open(model_server, tool_protocol=protocol)
    async for _ in adapter.stream(request(user(), model=door.model, tools=tools.specs())):
        pass
    await models.aclose()
    prompt = model_server.asked[-1].json["messages"][0]["content"]
    assert tools.get_prompt_stub() in prompt


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_cannot_be_read_is_asked_for_once_with_what_was_expected(
    protocol: str, model_server: ModelServer
) -> None:
    broken = ['<tool_call>\n{"name": "files/read", "arguments": {"pa']
    heard = await hear(DOORS[0], model_server, broken, ["All is well."], protocol=protocol)
    assert [type(event).__name__ for event in heard].count("Restarted") == 1
    assert closing(heard).message == AssistantMessage(text=Text("All is well."))
    first, second = asked_of(model_server, DOORS[0])
    assert "could not be read" not in first
    assert "Your reply could not be read: the JSON is not valid" in second


async def test_natively_what_is_still_not_read_is_marked_as_no_answer(model_server: ModelServer) -> None:
    broken = '<tool_call>\n{"name": "files/read", "arguments": {"pa'
    heard = await hear(DOORS[0], model_server, [broken])
    assert closing(heard).message == mark_unreadable(AssistantMessage(text=Text(broken)))
    assert len(model_server.asked) == 2
    last = next(at for at, event in enumerate(heard) if isinstance(event, Restarted))
    assert text_of(heard[last:]) == broken


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_reply_that_reached_its_limit_runs_nothing(protocol: str, model_server: ModelServer) -> None:
    heard = await hear(
        DOORS[0], model_server, [f"<tool_call>{C}</tool_call>"], ["Stop."], protocol=protocol, finish="length"
    )
    assert closing(heard).message.calls == ()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_call_that_is_cut_off_each_time_ends_as_a_reply_at_its_limit(
    protocol: str, model_server: ModelServer
) -> None:
    """A23.1: a small output limit is no fault of the protocol: the run says that the reply was cut off."""
    heard = await hear(DOORS[0], model_server, [CUT_OFF], protocol=protocol, finish="length")
    assert closing(heard).message == mark_unreadable(AssistantMessage(text=Text(CUT_OFF)))
    assert closing(heard).finish == "length"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_model_is_told_that_its_invented_results_were_dropped(
    protocol: str, model_server: ModelServer
) -> None:
    reply = f"<tool_call>{C}</tool_call>\n<tool_response>x = 1</tool_response>\nx is 1."
    message = closing(await hear(DOORS[0], model_server, [reply], protocol=protocol)).message
    assert [call.tool for call in message.calls] == ["files/read"]
    assert message.text == ""
    then = (user(), message, result(message.calls[0].id, "x = 2"), UserMessage(text="And?"))
    await hear(DOORS[0], model_server, ["x is 2."], protocol=protocol, asked=then)
    sent = json.loads(asked_of(model_server, DOORS[0])[-1])["messages"]
    roles = [each["role"] for each in sent if each["role"] != "system"]
    note = next(at for at, each in enumerate(sent) if "went on with results" in str(each["content"]))
    assert roles[-2:] == ["user", "user"]
    assert note == len(sent) - 2
    assert "x is 1." not in str(sent)


@for_each(
    "address",
    ["https://api.openai.com/v1", "https://eu.api.openai.com/v1", "https://x.openai.azure.com/openai/v1"],
)
def test_the_makers_own_addresses_are_known(address: str) -> None:
    models, adapter = Door("openai", "m", CHAT, DOORS[0].says).open(ModelServer(), base_url=address)
    assert models is not None
    assert not adapter.entry.writes_calls(address)


async def test_native_calls_may_name_one_another_by_number(model_server: ModelServer) -> None:
    arguments = ['{"path": "a"}', '{"path": {"$ref": "1.text"}}']
    calls = [
        {"index": at, "id": f"toolu_{at}", "function": {"name": "files__read", "arguments": text}}
        for at, text in enumerate(arguments)
    ]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    model_server.answer(
        CHAT, events({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}, end, done=True)
    )
    models, adapter = DOORS[0].open(model_server)
    heard = [e async for e in adapter.stream(request(user(), tools=TOOLS))]
    await models.aclose()
    assert closing(heard).message.calls[1].args == {"path": {"$ref": "toolu_0.text"}}


async def test_calls_that_the_service_gives_apart_are_all(model_server: ModelServer) -> None:
    heard = await hear(DOORS[0], model_server, ["Hello ", "there, a < b."])
    assert isinstance(heard[-1], Reply)
    assert text_of(heard) == "Hello there, a < b."


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_tool_that_was_not_sent_is_called_in_the_text_too(
    protocol: str, model_server: ModelServer
) -> None:
    odd = ToolSpec(name="trac.ker/do thing", description="d", parameters={"type": "object"}, effect="mcp")
    deferred = (TOOLS[0], odd)
    for spec in deferred:
        written = json.dumps({"name": wire_name(spec.name), "arguments": {}})
        model_server.answer(DOORS[0].path, DOORS[0].says([f"<tool_call>\n{written}\n</tool_call>"], "stop"))
        models, adapter = DOORS[0].open(model_server, tool_protocol=protocol)
        asked = replace(request(user(), model=DOORS[0].model, tools=TOOLS[1:]), deferred=deferred)
        heard = [event async for event in adapter.stream(asked)]
        await models.aclose()
        assert [call.tool for call in closing(heard).message.calls] == [spec.name]
        assert "do thing" not in asked_of(model_server, DOORS[0])[-1]

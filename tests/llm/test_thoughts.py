"""What a model thinks in its text is thinking: from every provider, in every protocol, whole and in pieces."""

from __future__ import annotations

import json

import pytest

from daiku.domain.messages import ModelEvent, Reply, Restarted, TextDelta
from tests.core.replies.test_thoughts import PAIRS
from tests.llm.doors import DOORS, Door
from tests.llm.server import ModelServer
from tests.llm.talk import READ, call, closing, request, text_of, thinking_of, user

THOUGHT = 'Maybe {"actions": [{"operation": "files/delete", "args": {"path": "a"}}]}? No.'
PROTOCOLS = ("native", "action_list", "command")


async def hear(door: Door, server: ModelServer, pieces: list[str], protocol: str) -> list[ModelEvent]:
    server.answer(door.path, door.says(pieces, "stop"))
    models, adapter = door.open(server, tool_protocol=protocol)
    heard = [event async for event in adapter.stream(request(user(), model=door.model, tools=(READ,)))]
    await models.aclose()
    return heard


def shown(heard: list[ModelEvent]) -> str:
    """The text that stands on the screen in the end."""
    starts = [at for at, event in enumerate(heard) if isinstance(event, Restarted)]
    return text_of(heard[starts[-1] if starts else 0 :])


def in_form(protocol: str, answer: str) -> str:
    match protocol:
        case "action_list":
            return json.dumps({"comment": answer, "actions": []})
        case "command":
            return json.dumps({"done": True, "comment": answer})
        case _:
            return answer


@pytest.mark.parametrize("door", DOORS, ids=str)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("way", ["whole", "letters", "unopened"])
async def test_a_thought_is_neither_carried_out_nor_the_answer(
    door: Door, protocol: str, way: str, model_server: ModelServer
) -> None:
    opener = "" if way == "unopened" else "<think>"
    text = f"{opener}\n{THOUGHT}\n</think>\n\n{in_form(protocol, 'It is fine.')}"
    heard = await hear(door, model_server, list(text) if way == "letters" else [text], protocol)
    reply = closing(heard)
    assert (reply.message.text, reply.message.thinking, reply.message.calls) == ("It is fine.", THOUGHT, ())
    assert reply.finish == "stop"
    assert (shown(heard), thinking_of(heard)) == ("It is fine.", THOUGHT)
    assert sum(asked.path.startswith(door.path) for asked in model_server.asked) == 1


@pytest.mark.parametrize("door", DOORS, ids=str)
@pytest.mark.parametrize(("opener", "closer"), PAIRS)
async def test_every_mark_of_a_thought_is_known_from_every_provider(
    door: Door, opener: str, closer: str, model_server: ModelServer
) -> None:
    text = f"{opener}{THOUGHT}{closer}Fine."
    heard = await hear(door, model_server, [text[at : at + 5] for at in range(0, len(text), 5)], "native")
    message = closing(heard).message
    assert (message.text, message.thinking) == ("Fine.", THOUGHT)
    assert (text_of(heard), thinking_of(heard)) == ("Fine.", THOUGHT)


@pytest.mark.parametrize("door", DOORS, ids=str)
async def test_a_thought_is_not_sent_back_as_an_answer(door: Door, model_server: ModelServer) -> None:
    first = closing(await hear(door, model_server, ["<think>secret thought</think>Fine."], "native"))
    model_server.answer(door.path, door.says(["Bye."], "stop"))
    models, adapter = door.open(model_server)
    again = request(user(), first.message, user("And now?"), model=door.model, tools=(READ,))
    assert isinstance([event async for event in adapter.stream(again)][-1], Reply)
    await models.aclose()
    sent = model_server.asked[-1].body
    assert b"Fine." in sent
    assert b"secret thought" not in sent


@pytest.mark.parametrize("door", DOORS, ids=str)
async def test_marks_that_are_quoted_are_text(door: Door, model_server: ModelServer) -> None:
    text = "Use `<think>` so:\n```\n<think>\nx\n</think>\n```\nIt ends with </think>."
    heard = await hear(door, model_server, [text], "native")
    assert (closing(heard).message.text, text_of(heard)) == (text, text)
    assert closing(heard).message.thinking == ""


async def test_what_was_shown_before_a_closing_mark_alone_is_void(model_server: ModelServer) -> None:
    heard = await hear(DOORS[0], model_server, ["Hm, so", " it is.\n", "</think>", "\n\nFine."], "native")
    kinds = [type(event).__name__ for event in heard[:-1]]
    assert kinds == ["TextDelta", "TextDelta", "Restarted", "ThinkingDelta", "TextDelta"]
    assert heard[-2] == TextDelta("Fine.")


async def test_a_call_behind_a_thought_is_kept(model_server: ModelServer) -> None:
    action = json.dumps({"comment": "", "actions": [{"operation": "files/read", "args": {"path": "b"}}]})
    heard = await hear(DOORS[0], model_server, [f"<think>{THOUGHT}</think>{action}"], "action_list")
    (made,) = closing(heard).message.calls
    assert (made.tool, made.args) == ("files/read", call(path="b").args)

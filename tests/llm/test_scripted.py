from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.errors import LLMRateLimitError, LLMRequestError, StreamCutError, UsageError
from daiku.domain.messages import (
    AssistantMessage,
    Message,
    ModelEvent,
    ModelRequest,
    Reply,
    TextDelta,
    ThinkingDelta,
    ToolMessage,
    UserMessage,
)
from daiku.models.provider import Provider
from daiku.models.scripted import ScriptedProvider
from daiku.texts.text import Text


def write(folder: Path, *lines: dict[str, Any] | str, name: str = "play.jsonl") -> str:
    text = "\n".join(
        line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines
    )
    (folder / name).write_text(text, encoding="utf-8")
    return name


async def play(
    provider: ScriptedProvider, model: str, messages: tuple[Message, ...], system: str = ""
) -> list[ModelEvent]:
    request = ModelRequest(model=model, system=system, messages=messages)
    return [event async for event in provider.stream(request)]


def closing(events: list[ModelEvent]) -> Reply:
    assert isinstance(events[-1], Reply)
    return events[-1]


def ask(text: str = "go") -> UserMessage:
    return UserMessage(text=text)


@pytest.fixture
def provider(tmp_path: Path) -> ScriptedProvider:
    return ScriptedProvider(folders=(tmp_path,))


async def test_it_is_a_provider(provider: ScriptedProvider) -> None:
    as_provider: Provider = provider
    assert as_provider.name == "scripted"
    assert await as_provider.models() == ()
    await as_provider.aclose()


async def test_text_streams_word_by_word_and_the_closing_reply_holds_all(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    name = write(tmp_path, {"text": "I read  the\nfile.", "thinking": "hm, well"})
    events = await play(provider, name, (ask(),))
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert texts == ["I ", "read  ", "the\n", "file."]
    assert [e.text for e in events if isinstance(e, ThinkingDelta)] == ["hm, ", "well"]
    reply = closing(events)
    assert (reply.message.text, reply.message.thinking) == ("I read  the\nfile.", "hm, well")
    assert reply.finish == "stop"
    assert reply.usage.model == "scripted/play.jsonl"
    assert reply.usage.prompt_tokens > 0
    assert reply.usage.cost == 0.0


async def test_the_reply_follows_from_the_messages_alone_so_a_resumed_run_goes_on(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    name = write(
        tmp_path,
        {"text": "one", "calls": [{"tool": "files/read", "args": {"path": "a.py"}}]},
        {"text": "two"},
        {"text": "three"},
    )
    first = closing(await play(provider, name, (ask(),))).message
    assert closing(await play(provider, name, (ask(),))).message.text == "one"
    history: tuple[Message, ...] = (
        ask(),
        first,
        ToolMessage(call_id=first.calls[0].id, tool="files/read", ok=True, text="x = 1"),
    )
    another = ScriptedProvider(folders=(tmp_path,))
    second = closing(await play(another, name, history)).message
    assert second.text == "two"
    assert closing(await play(another, name, (*history, second, ask()))).message.text == "three"


async def test_after_a_compaction_the_kept_reply_tells_the_place(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    name = write(tmp_path, {"text": "one"}, {"text": "two"}, {"text": "three"})
    one = closing(await play(provider, name, (ask(),))).message
    two = closing(await play(provider, name, (ask(), one, ask()))).message
    kept = (ask("Summary of it all"), two, ask())
    assert closing(await play(provider, name, kept)).message.text == "three"


async def test_a_line_with_when_is_skipped_unless_the_last_message_holds_it(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    name = write(
        tmp_path,
        {"text": "run", "calls": [{"tool": "shell/run", "args": {"command": "ls"}}]},
        {"when": "rejected", "text": "then I will not"},
        {"text": "done"},
    )
    run = closing(await play(provider, name, (ask(),))).message
    plain = AssistantMessage(text=Text("run"), calls=run.calls)  # also without what the provider keeps

    def result(text: str) -> ToolMessage:
        return ToolMessage(call_id=run.calls[0].id, tool="shell/run", ok=False, text=text)

    no = closing(await play(provider, name, (ask(), run, result("rejected by the person"))))
    yes = closing(await play(provider, name, (ask(), plain, result("a b c"))))
    assert (no.message.text, yes.message.text) == ("then I will not", "done")
    after = (ask(), plain, result("rejected"), AssistantMessage(text=Text("then I will not")), ask())
    assert closing(await play(provider, name, after)).message.text == "done"


async def test_a_line_for_another_agent_is_skipped(tmp_path: Path, provider: ScriptedProvider) -> None:
    name = write(tmp_path, {"agent": "You plan", "text": "the plan"}, {"text": "the rest"})
    planner = closing(await play(provider, name, (ask(),), system="You plan the work."))
    coder = closing(await play(provider, name, (ask(),), system="You write code."))
    assert (planner.message.text, coder.message.text) == ("the plan", "the rest")


async def test_what_the_person_wrote_can_be_used(tmp_path: Path, provider: ScriptedProvider) -> None:
    name = write(
        tmp_path,
        {
            "text": "You said “{{user}}”.",
            "calls": [{"tool": "files/write", "args": {"content": ["{{user}}!"]}}],
        },
    )
    reply = closing(await play(provider, name, (ask("こんにちは"),)))
    assert reply.message.text == "You said “こんにちは”."
    assert reply.message.calls[0].args == {"content": ["こんにちは!"]}
    assert reply.finish == "tool_calls"


async def test_malformed_arguments_can_be_played(tmp_path: Path, provider: ScriptedProvider) -> None:
    name = write(tmp_path, {"calls": [{"tool": "files/read", "malformed": '{"path": '}]})
    call = closing(await play(provider, name, (ask(),))).message.calls[0]
    assert call.malformed == '{"path": '


async def test_errors_are_raised_as_their_kind_and_as_often_as_the_script_says(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    limited = {"kind": "rate_limit", "status": 429, "retry_after": 2.5, "times": 1}
    name = write(tmp_path, {"text": "after all", "error": limited})
    with pytest.raises(LLMRateLimitError) as caught:
        await play(provider, name, (ask(),))
    assert (caught.value.status, caught.value.retry_after) == (429, 2.5)
    assert caught.value.failure.retryable
    assert closing(await play(provider, name, (ask(),))).message.text == "after all"


async def test_a_cut_shows_its_text_and_gives_no_reply(tmp_path: Path, provider: ScriptedProvider) -> None:
    name = write(tmp_path, {"text": "half a", "error": {"kind": "stream_cut"}})
    shown: list[ModelEvent] = []

    async def watch() -> None:
        async for event in provider.stream(ModelRequest(model=name, system="", messages=(ask(),))):
            shown.append(event)  # noqa: PERF401  # what came before the error is the point

    with pytest.raises(StreamCutError):
        await watch()
    assert shown == [TextDelta("half "), TextDelta("a")]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{not json", "line 2"),
        ('{"txet": "x"}', "txet"),
        ('{"calls": [{"args": {}}]}', "calls.0.tool"),
        ('["a"]', "line 2"),
        ('{"delay_ms": -1}', "delay_ms"),
    ],
)
async def test_a_wrong_line_is_named(
    tmp_path: Path, provider: ScriptedProvider, line: str, told: str
) -> None:
    name = write(tmp_path, {"text": "fine"}, line)
    with pytest.raises(UsageError) as caught:
        await play(provider, name, (ask(),))
    assert "line 2" in caught.value.failure.message
    assert told in caught.value.failure.message
    assert caught.value.failure.hint


async def test_a_missing_or_empty_script_is_a_usage_error(tmp_path: Path, provider: ScriptedProvider) -> None:
    (tmp_path / "empty.jsonl").write_text("\n// nothing\n", encoding="utf-8")
    for name in ("absent.jsonl", "empty.jsonl", ""):
        with pytest.raises(UsageError):
            await play(provider, name, (ask(),))


async def test_a_script_that_is_over_says_so(tmp_path: Path, provider: ScriptedProvider) -> None:
    name = write(tmp_path, {"text": "only"})
    only = closing(await play(provider, name, (ask(),))).message
    with pytest.raises(LLMRequestError, match="no replies left"):
        await play(provider, name, (ask(), only, ask()))


async def test_the_workspace_goes_before_the_current_folder_and_demo_is_built_in(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    write(there, {"text": "there"})
    write(there, {"text": "only there"}, name="other.jsonl")
    write(here, {"text": "here"})
    demo = there / "demo.jsonl"
    write(there, {"text": "the demonstration"}, name="demo.jsonl")
    provider = ScriptedProvider(folders=(here, there), demo=demo)
    for model, text in (
        ("play.jsonl", "here"),
        ("scripted/other.jsonl", "only there"),
        (str(there / "play.jsonl"), "there"),
        ("demo", "the demonstration"),
        ("scripted/demo", "the demonstration"),
    ):
        assert closing(await play(provider, model, (ask(),))).message.text == text
    (offered,) = await provider.models()
    assert (offered.name, "script" in offered.trait) == ("demo", True)


async def test_a_changed_script_is_read_again(tmp_path: Path, provider: ScriptedProvider) -> None:
    name = write(tmp_path, {"text": "old"})
    assert closing(await play(provider, name, (ask(),))).message.text == "old"
    (tmp_path / name).unlink()
    with pytest.raises(UsageError):
        await play(provider, name, (ask(),))


async def test_cancelling_stops_between_two_words(tmp_path: Path, provider: ScriptedProvider) -> None:
    name = write(tmp_path, {"text": "a " * 1000, "delay_ms": 60_000})
    task = asyncio.create_task(play(provider, name, (ask(),)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

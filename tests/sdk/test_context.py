"""The `context` of a program: each item reaches the model or is an error, and none is left out silently."""

from __future__ import annotations

import base64
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from daiku import Agent, Runner
from daiku.domain.messages import UserMessage
from daiku.testing import FakeLLM
from tests.cases import for_each
from tests.llm.pictures import picture, size_of

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WIDE = PIXEL[:16] + (9000).to_bytes(4, "big") + PIXEL[20:]


def ask(item: dict[str, Any], workspace: Path | None = None) -> UserMessage:
    llm = FakeLLM("Seen.")
    with closing(Runner(model=llm, workspace=workspace)) as runner:
        done = runner.run_sync(Agent("a", "Look."), "What is it?", context=[item])
    assert done.status == "completed"
    message = llm.requests[0].messages[0]
    assert isinstance(message, UserMessage)
    return message


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pixel.png").write_bytes(PIXEL)
    (tmp_path / "notes.txt").write_text("seven dwarfs", encoding="utf-8")
    (tmp_path / "wide.png").write_bytes(WIDE)
    (tmp_path / "false.png").write_text("no picture", encoding="utf-8")
    (tmp_path / "data.bin").write_bytes(b"\0\1\2")
    (tmp_path / "large.txt").write_bytes(b"x" * 1_000_001)
    return tmp_path


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("form", ["uri", "absolute", "relative"])
def test_a_picture_is_sent_to_the_model(
    folder: Path, inside: bool, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    place = folder / "pixel.png"
    named = {"uri": place.as_uri(), "absolute": str(place), "relative": "pixel.png"}[form]
    message = ask({"kind": "file", "uri": named}, folder if inside else None)
    assert [base64.b64decode(image.data) for image in message.images] == [PIXEL]
    assert "pixel.png" in message.text


def test_a_picture_that_is_too_wide_is_scaled(folder: Path) -> None:
    (folder / "wide.png").write_bytes(picture(9000, 20))
    (image,) = ask({"kind": "file", "uri": str(folder / "wide.png")}).images
    assert size_of(image.data) == (8000, 17)


def test_a_text_file_is_given_where_no_tool_can_read_it(folder: Path) -> None:
    place = str(folder / "notes.txt")
    assert "seven dwarfs" in ask({"kind": "file", "path": place}).text
    assert "seven dwarfs" not in ask({"kind": "file", "path": place}, folder).text
    (folder / "inner").mkdir()
    assert "seven dwarfs" in ask({"kind": "file", "path": place}, folder / "inner").text


@for_each(
    ("name", "words"),
    {
        "missing": ("nosuch.png", "does not exist"),
        "missing text": ("nosuch.txt", "does not exist"),
        "damaged": ("wide.png", r"wide\.png cannot be sent: it is not a complete PNG"),
        "no picture": ("false.png", r"false\.png cannot be sent: it is not a complete PNG"),
        "binary": ("data.bin", "neither text nor a picture"),
        "large": ("large.txt", "more than 1,000,000 bytes"),
        "folder": (".", "a folder outside"),
    }.values(),
)
def test_a_file_that_cannot_be_used_is_an_error(folder: Path, name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ask({"kind": "file", "uri": str(folder / name)})


def test_a_model_that_takes_no_pictures_is_named(folder: Path) -> None:
    agent = Agent("a", "Look.", model="openai/gpt-3.5-turbo")
    settings = {"llm": {"openai": {"api_key": "sk-none", "base_url": "http://127.0.0.1:9/v1"}}}
    item = {"kind": "file", "uri": str(folder / "pixel.png")}
    none = pytest.raises(ValueError, match=r"openai/gpt-3\.5-turbo takes none")
    with closing(Runner(settings=settings)) as runner, none:
        runner.run_sync(agent, "What?", context=[item])


async def test_a_picture_stays_in_the_conversation(folder: Path) -> None:
    llm = FakeLLM("A dot.", "Red.")
    async with Runner(model=llm) as runner:
        first = await runner.run(
            Agent("a", "x"), "What?", context=[{"kind": "file", "uri": str(folder / "pixel.png")}]
        )
        await runner.run(Agent("a", "x"), "Which color?", session=first.session_id)
    message = llm.requests[1].messages[0]
    assert isinstance(message, UserMessage)
    assert len(message.images) == 1

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.messages import AssistantMessage, Image, ModelRequest, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.models.tokens import TOKENS_PER_IMAGE, estimate, estimate_message, estimate_request
from daiku.texts.text import Text
from tests.timing import cpu_seconds


def test_plain_english_is_about_a_token_a_word() -> None:
    assert estimate("The quick brown fox jumps over the lazy dog.") == 10


def test_japanese_is_about_one_token_a_character_not_a_quarter() -> None:
    """X.27"""
    text = (
        "大工は、エディターの中で働くソフトウェア技術者です。計画を立て、コードを書き、実行して直します。"
        * 20
    )
    assert 0.65 * len(text) <= estimate(text) <= 1.1 * len(text)


def test_korean_and_chinese_are_about_one_token_a_character() -> None:
    """X.27: one estimate, by which Chinese, Japanese and Korean count about one to one."""
    for text in ("编写代码并运行测试" * 30, "코드를작성하고테스트를실행합니다" * 30):
        assert 0.8 * len(text) <= estimate(text) <= 1.2 * len(text)


def _recorded(folder: Path) -> Iterator[tuple[str, int]]:
    """Replies of plain text and what the service counted for them."""
    for path in sorted(folder.glob("openai-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            expected = json.loads(line)["expected"]
            usage = expected["usage"] or {}
            counted = usage.get("completion_tokens") or usage.get("output_tokens") or 0
            details = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
            plain = not (expected["tool_calls"] or expected["reasoning"] or details.get("reasoning_tokens"))
            if plain and counted and len(expected["text"]) > 80:
                yield expected["text"], counted


def test_recorded_replies_of_openai_are_estimated_within_a_tenth_on_the_whole(corpora: Path) -> None:
    replies = list(_recorded(corpora / "llm" / "openai"))
    counted = sum(tokens for _, tokens in replies)
    assert len(replies) > 20
    assert abs(sum(estimate(text) for text, _ in replies) - counted) <= 0.1 * counted


@given(st.text(), st.text())
def test_it_never_shrinks_by_more_than_a_join_when_text_is_added(left: str, right: str) -> None:
    assert estimate(left + right) >= estimate(left) - 2
    assert estimate(left + right) <= estimate(left) + estimate(right) + 2


def test_lone_surrogates_are_counted_not_refused() -> None:
    assert estimate("a\ud800b") > 0


def test_time_grows_with_the_text_only() -> None:
    def seconds(text: str) -> float:
        return cpu_seconds(lambda: estimate(text))

    unit = "x = foo(bar)  \n    日本語 " * 4000
    seconds(unit)
    assert seconds(unit * 8) < 40 * max(seconds(unit), 1e-4)


def test_newer_claude_models_count_more_for_the_same_text() -> None:
    text = "some words to count " * 50
    assert estimate(text) < estimate(text, "claude-3-opus-20240229") < estimate(text, "claude-sonnet-5-5")


def test_a_request_counts_system_tools_calls_results_and_images() -> None:
    picture = Image(media_type="image/png", data="A" * 100_000)
    call = ToolCall(id="c1", tool="files/read", args={"path": "a.py"})
    messages = (
        UserMessage(text="look", images=(picture,)),
        AssistantMessage(text=Text("reading"), calls=(call,)),
        ToolMessage(call_id="c1", tool="files/read", ok=True, text="word " * 100),
    )
    tool = ToolSpec(
        name="files/read", description="Read a file", parameters={"type": "object"}, effect="read"
    )
    small = estimate_request(ModelRequest(model="m", system="", messages=messages))
    full = estimate_request(
        ModelRequest(model="m", system="be brief " * 10, messages=messages, tools=(tool,))
    )
    assert TOKENS_PER_IMAGE + 100 < small < TOKENS_PER_IMAGE + 200
    assert full > small + 20
    assert estimate_message(messages[1]) > 4

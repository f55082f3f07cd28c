"""Every recorded exchange decodes to what was expected, however its bytes arrive; no cut goes unseen."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

import pytest
from inline_snapshot import snapshot

from daiku.domain.errors import LLMAuthError, LLMError, StreamCutError
from daiku.models.transport.failures import from_status
from tests.llm.corpus import LLM, PROTOCOLS, SERVICE, Heard, Record, decode, files, records

# Recorded provider traffic is never committed; CI has the folder next to its clone.
pytestmark = pytest.mark.skipif(not LLM.is_dir(), reason="no recorded cases; DAIKU_CORPORA names the folder")

# Records that we read better than the expectation, which is what the official SDK makes of them.
BETTER = {
    "gemini-gemini-4c4bf74f0ae6": "arguments that come in parts are put together",
    "cerebras-openai-chat-59df8fdc57f5": "two calls have the same index but ids of their own: two calls, not one",
    "openai-openai-responses-2590a3fdbd7f": "a custom tool's free text is kept under `input`",
    "openai-openai-responses-d6719e21f367": "the recording lacks deltas of the text that its closing event has",
}


def check(record: Record, heard: Heard, streamed: bool) -> None:
    message, expected, where = heard.reply.message, record.expected, record.id
    if heard.reply.finish == "content_filter":
        # A refusal is told as text, also where the protocol says it beside the text.
        assert message.text in (expected["text"], expected.get("refusal")) or not expected["text"], where
    else:
        assert message.text == expected["text"], where
    if expected["reasoning"] or b"reasoning_text" not in record.body:
        # The parts of a summary stand apart for a reader; the expectation runs them together.
        assert message.thinking.replace("\n\n", "") == expected["reasoning"].replace("\n\n", ""), where
    else:
        assert message.thinking, f"{where}: open reasoning is shown, which the expectation leaves out"
    usage = expected["usage"] or {}
    if usage.get("input_tokens") or usage.get("prompt_tokens"):
        assert heard.reply.usage.prompt_tokens > 0, where
    if record.id not in BETTER:
        assert heard.calls == record.calls, where
        alone = record.first_end == len(record.body)
        if streamed and alone and heard.text and record.body[:1] not in b"{[":
            assert (heard.text, heard.thinking) == (message.text, message.thinking), where


def check_all(name: str, kind: str, frame: Callable[[bytes], list[bytes]]) -> None:
    for record in records(name, kind):
        if "ambiguous" in record.kinds:
            continue
        if record.fails:
            with pytest.raises(LLMError) as caught:
                decode(record.decoder(), frame(record.body))
            assert not isinstance(caught.value, StreamCutError), record.id
            continue
        check(record, decode(record.decoder(), frame(record.body)), kind == "stream")


def in_bytes(body: bytes) -> list[bytes]:
    return [body[i : i + 1] for i in range(len(body))]


def in_pieces(body: bytes) -> list[bytes]:
    dice = random.Random(len(body))  # the same pieces in every run
    cuts = sorted(dice.sample(range(len(body)), min(len(body) // 20, 200)))
    return [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]


def crlf(body: bytes) -> bytes:
    return body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def with_keep_alives(body: bytes) -> bytes:
    """Comments between the events, blank lines between JSON lines, nothing in a document."""
    if body[:1] in b"{[":
        return b"\n\n  \n" + body
    return b": keepalive\n\n" + crlf(body).replace(b"\r\n", b"\n").replace(b"\n\n", b"\n\n: keepalive\n\n")


def test_every_recorded_protocol_has_a_decoder() -> None:
    recorded = {name.partition("/")[2] for kind in ("stream", "json") for name in files(kind)}
    assert recorded == set(PROTOCOLS)


@pytest.mark.parametrize("name", files("stream"))
def test_streams_decode_whole(name: str) -> None:
    check_all(name, "stream", lambda body: [body])


@pytest.mark.parametrize("name", files("stream"))
def test_streams_decode_in_any_pieces(name: str) -> None:
    check_all(name, "stream", in_pieces)


@pytest.mark.slow
@pytest.mark.parametrize("name", files("stream"))
def test_streams_decode_byte_by_byte(name: str) -> None:
    check_all(name, "stream", in_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("name", files("stream"))
def test_streams_decode_byte_by_byte_with_crlf(name: str) -> None:
    check_all(name, "stream", lambda body: in_bytes(crlf(body)))


@pytest.mark.parametrize("name", files("stream"))
def test_streams_decode_with_crlf_and_a_byte_order_mark(name: str) -> None:
    check_all(name, "stream", lambda body: in_pieces(b"\xef\xbb\xbf" + crlf(body)))


@pytest.mark.parametrize("name", files("stream"))
def test_streams_decode_with_keep_alives(name: str) -> None:
    check_all(name, "stream", lambda body: in_pieces(with_keep_alives(body)))


@pytest.mark.parametrize("name", files("json"))
def test_whole_answers_decode(name: str) -> None:
    check_all(name, "json", lambda body: [body])


def boundaries(body: bytes) -> list[int]:
    """The places just behind each event or line."""
    return [found.end() for found in re.finditer(rb"(?:\r?\n){2,}|(?<=\})\r?\n", body)]


def prefixes(body: bytes, every: bool) -> Iterator[int]:
    dice = random.Random(len(body))
    ends = [end for end in boundaries(body) if end < len(body)]
    inside = dice.sample(range(1, len(body) - 1), min(12, len(body) // 10))
    yield from ends if every or len(ends) < 16 else dice.sample(ends, 12) + ends[-4:]
    yield from inside


def check_cuts(name: str, every: bool) -> None:
    for record in records(name, "stream"):
        if record.fails or "ambiguous" in record.kinds:
            continue
        whole = decode(record.decoder(), [record.body]).reply
        for end in prefixes(record.body[: record.first_end], every):
            try:
                cut = decode(record.decoder(), [record.body[:end]]).reply
            except LLMError:
                continue
            # Behind the closing event only usage and formalities can be missing.
            place = f"{record.id} cut at {end} of {len(record.body)}"
            assert (cut.message.text, cut.finish) == (whole.message.text, whole.finish), place
            assert _calls(cut.message.calls) == _calls(whole.message.calls), place


def _calls(calls: tuple[object, ...]) -> list[tuple[object, ...]]:
    return [(getattr(c, "tool", ""), getattr(c, "args", {}), getattr(c, "malformed", "")) for c in calls]


@pytest.mark.slow
@pytest.mark.parametrize("name", files("stream"))
def test_a_stream_that_is_cut_is_seen_to_be_cut(name: str) -> None:
    check_cuts(name, every=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", files("stream"))
def test_a_stream_that_is_cut_behind_any_event_is_seen_to_be_cut(name: str) -> None:
    check_cuts(name, every=True)


@pytest.mark.parametrize("name", files("error"))
def test_a_recorded_error_is_one_typed_error_that_says_what_the_service_said(name: str) -> None:
    for record in records(name, "error"):
        error = from_status(SERVICE, record.status, record.body, record.headers)
        assert error.status == record.status
        assert not error.failure.retryable, record.id
        said = record.expected["error"].get("message") or record.expected["error"].get("detail")
        assert said[:60] in error.failure.message
        if record.status == 401:
            assert isinstance(error, LLMAuthError), record.id


def test_recorded_errors_have_these_kinds() -> None:
    kinds = {
        record.id: from_status(SERVICE, record.status, record.body).failure.kind
        for name in files("error")
        for record in records(name, "error")
    }
    assert kinds == snapshot(
        {
            "anthropic-anthropic-c899fb85af92": "bad_request",
            "deepseek-openai-chat-1e5c9a064dfb": "auth",
            "deepseek-openai-chat-3fd79029d685": "context_overflow",
            "deepseek-openai-responses-e7eaabaec7be": "bad_request",
            "gemini-gemini-cf4e68c84547": "auth",
            "groq-openai-chat-193fcf406668": "bad_request",
            "groq-openai-chat-584b12acacba": "bad_request",
            "mistral-openai-chat-72f2fdfc57e7": "auth",
            "ollama-openai-chat-0167ed9b4f31": "context_overflow",
            "openai-openai-chat-3d91dbf3c316": "not_found",
            "openai-openai-chat-be4735804513": "bad_request",
            "openai-openai-chat-ed863ea4d739": "bad_request",
            "openai-openai-responses-09aad4d19af7": "bad_request",
            "openai-openai-responses-34a870f3483e": "auth",
            "openai-openai-responses-6665f7ac2874": "bad_request",
            "openai-openai-responses-76d3de09d553": "bad_request",
            "openai-openai-responses-87c6bd419601": "not_found",
            "openrouter-openai-chat-ad74b1bb2d44": "auth",
            "openrouter-openai-chat-d3933180889b": "context_overflow",
            "perplexity-openai-chat-7e3662290e6b": "context_overflow",
            "perplexity-openai-chat-be6c06f84b5e": "auth",
            "vertex-gemini-1c90ff5cadf1": "not_found",
            "vertex-gemini-2e15714c7878": "bad_request",
            "vertex-gemini-80ba75853e9e": "bad_request",
            "vertex-gemini-e9be7281a1f9": "bad_request",
        }
    )

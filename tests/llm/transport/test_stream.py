"""Bytes of any framing, in any pieces, give the same events."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.models.transport.stream import (
    LineParser,
    SseEvent,
    SseParser,
    SurrogateReplacer,
    encode_json,
    parse_json,
    replace_surrogates,
)
from tests.cases import for_each
from tests.timing import cpu_seconds

texts = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=20)
event_lists = st.lists(
    st.tuples(st.sampled_from(["", "message", "x.y"]), st.lists(texts, min_size=1)), max_size=8
)
cuts = st.lists(st.integers(1, 12), min_size=1, max_size=40)


def in_pieces(body: bytes, sizes: list[int]) -> list[bytes]:
    pieces: list[bytes] = []
    at, turn = 0, 0
    while at < len(body):
        pieces.append(body[at : at + sizes[turn % len(sizes)]])
        at += len(pieces[-1])
        turn += 1
    return pieces


def framed(events: list[tuple[str, list[str]]], end: str, comments: bool) -> bytes:
    lines: list[str] = []
    for name, data in events:
        lines += [": still here", ""] if comments else []
        lines += [f"event: {name}"] if name else []
        lines += ["id: 7", "retry: 10"] if comments else []
        lines += [*(f"data: {text}" for text in data), ""]
    return (end.join(lines) + end).encode() if lines else b""


@given(event_lists, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.booleans(), cuts)
def test_events_are_the_same_in_every_framing(
    events: list[tuple[str, list[str]]], end: str, comments: bool, bom: bool, sizes: list[int]
) -> None:
    body = (b"\xef\xbb\xbf" if bom else b"") + framed(events, end, comments)
    cutter = SseParser()
    found = [event for piece in in_pieces(body, sizes) for event in cutter.feed(piece)] + cutter.flush()
    assert found == [SseEvent(name, "\n".join(data).encode()) for name, data in events]
    assert cutter.document is None


@given(st.dictionaries(texts, texts, min_size=1), cuts)
def test_a_json_document_is_kept_whole(document: dict[str, str], sizes: list[int]) -> None:
    body = b"\n  " + json.dumps(document, indent=1).encode()
    cutter = SseParser()
    assert [event for piece in in_pieces(body, sizes) for event in cutter.feed(piece)] == []
    assert json.loads(cutter.document or b"") == document


def test_a_last_event_without_its_blank_line_is_found_at_the_end() -> None:
    cutter = SseParser()
    assert cutter.feed(b"data: 1\n\ndata: [DO") == [SseEvent("", b"1")]
    assert cutter.feed(b"NE]") == []
    assert cutter.flush() == [SseEvent("", b"[DONE]")]


def test_a_bare_json_error_between_events_is_an_event() -> None:
    assert SseParser().feed(b'data: {}\n\n{"error": "x"}\n\n')[1].data == b'{"error": "x"}'


def test_an_error_in_a_field_of_its_own_is_an_error_event() -> None:
    (event,) = SseParser().feed(b'error: {"code": 400, "message": "the context is full"}\n\n')
    assert parse_json(event.data) == {"error": {"code": 400, "message": "the context is full"}}


@given(st.lists(st.dictionaries(texts, texts), max_size=8), st.sampled_from(["\n", "\r\n", "\n\n"]), cuts)
def test_lines_are_the_same_in_every_framing(
    values: list[dict[str, str]], end: str, sizes: list[int]
) -> None:
    body = b"\xef\xbb\xbf" + end.join(json.dumps(value, ensure_ascii=False) for value in values).encode()
    cutter = LineParser()
    lines = [line for piece in in_pieces(body, sizes) for line in cutter.feed(piece)] + cutter.flush()
    assert [json.loads(line) for line in lines] == values


@for_each("cutter", [SseParser(), LineParser()])
def test_one_huge_event_in_small_pieces_takes_linear_time(cutter: SseParser | LineParser) -> None:
    def seconds(size: int) -> float:
        pieces = [b"x" * 16] * (size // 16)

        def cut() -> None:
            cutter.feed(b"data: ")
            for piece in pieces:
                cutter.feed(piece)
            assert len(cutter.feed(b"\n\n")) == 1

        return cpu_seconds(cut)

    small, large = seconds(200_000), seconds(3_200_000)
    assert large < 16 * 6 * max(small, 0.002)


@given(st.text(), cuts)
def test_text_that_was_cut_between_surrogates_is_whole_again(text: str, sizes: list[int]) -> None:
    halves = text.encode("utf-16", "surrogatepass")[2:]
    units = "".join(chr(halves[i] | halves[i + 1] << 8) for i in range(0, len(halves), 2))
    mender = SurrogateReplacer()
    at, out, turn = 0, "", 0
    while at < len(units):
        out += mender.feed(units[at : at + sizes[turn % len(sizes)]])
        at += sizes[turn % len(sizes)]
        turn += 1
    assert out + mender.flush() == replace_surrogates(text)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=10))
def test_whatever_is_encoded_can_be_read(value: object) -> None:
    encoded = encode_json(value)  # type: ignore[arg-type]  # Hypothesis builds JSON values
    assert parse_json(encoded) is not None or value is None


def test_lone_surrogates_and_raw_line_ends_in_json_are_let_through() -> None:
    assert parse_json(b'{"a": "\\ud83d", "b": "one\ntwo"}') == {"a": "\ud83d", "b": "one\ntwo"}
    with pytest.raises(ValueError, match=r"."):
        parse_json(b"\xff{}")

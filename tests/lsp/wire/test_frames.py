from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.fronts.lsp.wire.frames import MAX_BODY, BadFrame, Frames, frame


def read(*pieces: bytes) -> list[bytes | BadFrame]:
    frames = Frames()
    return [item for piece in pieces for item in frames.feed(piece)]


def bodies(items: list[bytes | BadFrame]) -> list[bytes]:
    return [item for item in items if isinstance(item, bytes)]


def test_a_frame_is_read_back() -> None:
    assert read(frame(b'{"a":1}')) == [b'{"a":1}']


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(1, 30), min_size=1))
def test_frames_are_read_however_the_bytes_are_cut(messages: list[bytes], sizes: list[int]) -> None:
    data, pieces, i = b"".join(map(frame, messages)), [], 0
    while data:
        size = sizes[i % len(sizes)]
        pieces.append(data[:size])
        data, i = data[size:], i + 1
    assert read(*pieces) == messages


def test_other_headers_lower_case_and_bare_newlines_are_accepted() -> None:
    assert read(
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}"
    ) == [b"{}"]
    assert read(b"content-length:2\n\n{}") == [b"{}"]


def test_empty_lines_between_frames_are_skipped() -> None:
    assert read(b"\r\n" * 100_000 + frame(b"{}")) == [b"{}"]


def test_a_wrong_length_is_told_and_the_next_frame_is_read() -> None:
    for value in (b"-5", b"abc", b"", b"1e3", b"9" * 400, str(MAX_BODY + 1).encode()):
        items = read(b"Content-Length: " + value + b"\r\n\r\n" + frame(b"{}"))
        assert isinstance(items[0], BadFrame)
        assert bodies(items) == [b"{}"]


def test_a_header_without_a_length_is_told_at_once() -> None:
    items = read(b"Content-Type: text/plain\r\n\r\n")
    assert [type(item) for item in items] == [BadFrame]


def test_garbage_before_a_frame_is_told_and_skipped() -> None:
    for garbage in (b"hello\r\n", b"}}}", b'{"jsonrpc":"2.0"}', b"\x00\xff\xfe\n", b"x\r\n\r\ny"):
        items = read(garbage + frame(b"{}"))
        assert bodies(items) == [b"{}"], garbage
        assert any(isinstance(item, BadFrame) for item in items), garbage


def test_endless_garbage_is_told_and_does_not_pile_up() -> None:
    frames = Frames()
    told = sum(isinstance(item, BadFrame) for _ in range(100) for item in frames.feed(b"x" * 10_000))
    assert told
    assert len(frames.unread_bytes()) < 64 * 1024


def test_a_body_that_swallowed_the_next_frame_gives_it_back() -> None:
    frames = Frames()
    cut = frame(b'{"a":')[:-3] + frame(b"{}")
    first = next(iter(frames.feed(cut + b" " * 10)))
    assert isinstance(first, bytes)
    frames.push_back(first)
    assert b"{}" in bodies(list(frames.feed(b"")))


def test_what_was_not_given_out_can_be_handed_on() -> None:
    frames = Frames()
    assert next(iter(frames.feed(frame(b"1") + frame(b"22") + b"Content-Le"))) == b"1"
    assert frames.unread_bytes() == frame(b"22") + b"Content-Le"
    next(iter(frames.feed(b"Content-Length: 5\r\n\r\nab")), None)
    assert frames.unread_bytes() == b"Content-Length: 5\r\n\r\nab"


def test_the_end_within_a_message_is_told() -> None:
    frames = Frames()
    list(frames.feed(frame(b"{}")))
    assert frames.end() is None
    list(frames.feed(b"Content-Length: 5\r\n\r\nab"))
    assert frames.end() is not None

"""Server-sent events as bytes: one of a chunk, the one that ends a run, the comment that shows a stream is alive."""

from __future__ import annotations

from daiku.domain.chunks import Chunk
from daiku.domain.runs import RunResult

COMMENT = b": nothing new\n\n"


def chunk_frame(chunk: Chunk) -> bytes:
    """The event of a chunk; its data is the chunk's JSON, unchanged (R1.9). JSON holds no line breaks."""
    return f"id: {chunk.seq}\nevent: {chunk.event.type}\ndata: {chunk.json()}\n\n".encode("utf-8", "replace")


def result_frame(result: RunResult) -> bytes:
    """The last event of a run's stream. It has no id: a client goes on behind the last chunk."""
    data = result.model_dump_json(by_alias=True, exclude_none=True)
    return f"event: result\ndata: {data}\n\n".encode()

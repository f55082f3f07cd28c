"""Entry point of `daiku lsp`: answer `initialize` before heavy imports, then load the server."""

from __future__ import annotations

import json
import os

from daiku.fronts.lsp.initialize import Json, Offer, find_problems, initialize_result, read_offer
from daiku.fronts.lsp.wire.frames import Frames, frame

READ_SIZE = 256 * 1024
"""Bytes per read."""


def main(argv: list[str]) -> int:
    """Run `daiku lsp` with these arguments and return the exit code."""
    if argv not in ([], ["--stdio"]):
        return _serve_tcp(argv)
    fds = _take_stdio()
    early, offer = answer_initialize(*fds)
    # After the response: importing pygls, pydantic, and the run code takes most of the startup time.
    from daiku.fronts.lsp.server import main as serve

    return serve(fds=fds, early=early, offer=offer)


def answer_initialize(inlet: int, outlet: int) -> tuple[bytes, Offer | None]:
    """Answer the first message if it is a well-formed `initialize`.

    Returns the bytes read after it, and the client's capabilities. Otherwise nothing is answered, and all
    bytes and None are returned.
    """
    frames = Frames()
    received = b""
    while data := os.read(inlet, READ_SIZE):
        received += data
        body = next(iter(frames.feed(data)), None)
        if body is None:
            continue
        request = _parse_initialize(body) if isinstance(body, bytes) else None
        if request is None:
            return received, None
        msg_id, offer = request
        result = {"jsonrpc": "2.0", "id": msg_id, "result": initialize_result(offer)}
        _write(outlet, frame(json.dumps(result, separators=(",", ":")).encode()))
        return frames.unread_bytes(), offer
    return received, None


def _parse_initialize(body: bytes) -> tuple[int | str, Offer] | None:
    """Return the id and the capabilities of a well-formed `initialize`; None for anything else."""
    try:
        message: Json = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return None
    msg_id, params = message.get("id"), message.get("params")
    if message.get("method") != "initialize" or not isinstance(msg_id, int | str) or isinstance(msg_id, bool):
        return None
    if find_problems(params) or not isinstance(params, dict):
        return None
    return msg_id, read_offer(params)


def _take_stdio() -> tuple[int, int]:
    """Reserve stdin and stdout for the protocol; other code reads nothing and writes to stderr.

    Returns the file descriptors for reading and writing.
    """
    inlet, outlet = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return inlet, outlet


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _serve_tcp(argv: list[str]) -> int:
    value = argv[1] if len(argv) == 2 and argv[0] == "--tcp" else argv[0].removeprefix("--tcp=")
    host, _, port = value.rpartition(":")
    if not port.isdigit() or int(port) > 65535 or len(argv) > 2:
        os.write(2, b"daiku lsp: the options are --stdio and --tcp HOST:PORT\n")
        return 2
    # No client is waiting yet, so the import may take its time.
    from daiku.fronts.lsp.server import main as serve

    return serve(tcp=(host.strip("[]") or "127.0.0.1", int(port)))

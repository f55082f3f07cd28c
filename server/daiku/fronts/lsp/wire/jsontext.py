"""Parse untrusted JSON, and write JSON-RPC messages as bytes."""

from __future__ import annotations

import json
from typing import TypeAlias

from pydantic import BaseModel
from pydantic_core import from_json

from daiku.fronts.lsp.initialize import Json
from daiku.fronts.lsp.wire.frames import frame

MessageId: TypeAlias = int | str | float | None


def read_json(body: bytes) -> Json:
    """Parse `body`. Raises ValueError if it is not JSON.

    Unpaired surrogates, which an editor may produce, and invalid UTF-8 become U+FFFD.
    """
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError:
        pass
    try:
        return _replace_surrogates(
            json.loads(body.decode("utf-8", "replace"), parse_constant=_reject_constant)
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def write_json(value: Json) -> str:
    """Return compact JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def model_json(model: BaseModel | None) -> str:
    """Return a result as JSON of the contract: camelCase, None fields omitted; None is `null`."""
    return "null" if model is None else model.model_dump_json(by_alias=True, exclude_none=True)


def encode(text: str) -> bytes:
    """Return `text` as a frame."""
    return frame(text.encode("utf-8", "replace"))


def response(msg_id: MessageId, result: str) -> bytes:
    """Return the frame of a response; `result` is JSON text."""
    return encode(f'{{"jsonrpc":"2.0","id":{json.dumps(msg_id)},"result":{result}}}')


def error_response(msg_id: MessageId, code: int, message: str, data: Json = None) -> bytes:
    """Return the frame of an error response."""
    error: dict[str, Json] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return encode(f'{{"jsonrpc":"2.0","id":{json.dumps(msg_id)},"error":{write_json(error)}}}')


def notification(method: str, params: str) -> bytes:
    """Return the frame of a notification; `params` is JSON text."""
    return encode(f'{{"jsonrpc":"2.0","method":{json.dumps(method)},"params":{params}}}')


def request(msg_id: MessageId, method: str, params: str) -> bytes:
    """Return the frame of a request; `params` is JSON text."""
    return encode(
        f'{{"jsonrpc":"2.0","id":{json.dumps(msg_id)},"method":{json.dumps(method)},"params":{params}}}'
    )


def _reject_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")


def _replace_surrogates(value: Json) -> Json:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_replace_surrogates(v) for v in value]
        case dict():
            return {str(_replace_surrogates(k)): _replace_surrogates(v) for k, v in value.items()}
        case _:
            return value

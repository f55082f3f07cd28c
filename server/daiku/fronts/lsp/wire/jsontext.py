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
    """The value of `body`. Half surrogate pairs (an editor may cut one) and bytes that are no UTF-8
    become U+FFFD. Raises ValueError where it is no JSON."""
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError:
        pass
    try:
        return _mended(json.loads(body.decode("utf-8", "replace"), parse_constant=_refuse))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def write_json(value: Json) -> str:
    """Compact JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def model_json(model: BaseModel | None) -> str:
    """A result as the contract has it: camelCase, absent options left out; None is `null`."""
    return "null" if model is None else model.model_dump_json(by_alias=True, exclude_none=True)


def encode(text: str) -> bytes:
    """`text` as a frame."""
    return frame(text.encode("utf-8", "replace"))


def response(msg_id: MessageId, result: str) -> bytes:
    """The frame of an answer; `result` is JSON text."""
    return encode(f'{{"jsonrpc":"2.0","id":{json.dumps(msg_id)},"result":{result}}}')


def refusal(msg_id: MessageId, code: int, message: str, data: Json = None) -> bytes:
    """The frame of an error."""
    error: dict[str, Json] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return encode(f'{{"jsonrpc":"2.0","id":{json.dumps(msg_id)},"error":{write_json(error)}}}')


def notification(method: str, params: str) -> bytes:
    """The frame of a notification; `params` is JSON text."""
    return encode(f'{{"jsonrpc":"2.0","method":{json.dumps(method)},"params":{params}}}')


def request(msg_id: MessageId, method: str, params: str) -> bytes:
    """The frame of a request; `params` is JSON text."""
    return encode(
        f'{{"jsonrpc":"2.0","id":{json.dumps(msg_id)},"method":{json.dumps(method)},"params":{params}}}'
    )


def _refuse(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")


def _mended(value: Json) -> Json:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_mended(v) for v in value]
        case dict():
            return {str(_mended(k)): _mended(v) for k, v in value.items()}
        case _:
            return value

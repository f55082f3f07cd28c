"""JSON-RPC errors: codes, the exception, and problems of invalid params."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ValidationError

from daiku.fronts.lsp.initialize import Json

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL = (
    -32700,
    -32600,
    -32601,
    -32602,
    -32603,
)
NOT_INITIALIZED, CANCELLED, FAILED = -32002, -32800, -32803


class RpcError(Exception):
    """A JSON-RPC error response; `data` is any JSON."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def invalid_params(problems: Iterable[str]) -> RpcError:
    """Return the error for invalid params (-32602) with every problem."""
    return RpcError(INVALID_PARAMS, "Invalid params", list(problems))


def problems_of(error: ValidationError) -> list[str]:
    """Return one line per problem: its path, and what is wrong."""
    return [
        f"{'.'.join(str(part) for part in item['loc']) or 'params'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]

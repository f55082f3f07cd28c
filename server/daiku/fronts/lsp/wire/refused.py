"""Error answers: their JSON-RPC codes, the exception that carries one, every problem of invalid params."""

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


class Refused(Exception):
    """An error answer; `data` is any JSON."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def invalid(problems: Iterable[str]) -> Refused:
    """-32602 with every problem."""
    return Refused(INVALID_PARAMS, "Invalid params", list(problems))


def problems_of(error: ValidationError) -> list[str]:
    """Every problem in one line each: where, and what is wrong."""
    return [
        f"{'.'.join(str(part) for part in e['loc']) or 'params'}: {e['msg']}"
        for e in error.errors(include_url=False, include_context=False, include_input=False)
    ]

"""Convert errors to JSON-RPC errors: expected ones with their message, others with the class name only."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from acp import RequestError

from daiku.domain.errors import DaikuError, Failure
from daiku.texts.terminal import localize

log = logging.getLogger(__name__)

EXPECTED, NOT_FOUND, BUSY, INTERNAL = -32803, -32002, -32600, -32603
P = ParamSpec("P")
T = TypeVar("T")


def refusal(failure: Failure) -> RequestError:
    """Convert a failure to a request error in the user's language; `data` is for programs."""
    message, hint = localize(failure.message), localize(failure.hint)
    code = {"not_found": NOT_FOUND, "busy": BUSY}.get(failure.kind, EXPECTED)
    data = {"kind": failure.kind, "message": message, "hint": hint}
    return RequestError(code, f"{message} {hint}".strip(), data)


def convert_errors(handler: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Decorate a request handler so that it only raises RequestError.

    One of the three places that catch all exceptions.
    """

    @functools.wraps(handler)
    async def handle(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await handler(*args, **kwargs)
        except RequestError:
            raise
        except DaikuError as error:
            raise refusal(error.failure) from None
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("a request failed")
            raise RequestError(INTERNAL, "Internal error", {"class": type(error).__name__}) from None

    return handle

"""JSON-RPC for the language server: every request is answered exactly once, for any input.

pygls provides the converter between JSON and lsprotocol's types. Reading, routing, and requests are our own,
because pygls leaves requests with invalid params unanswered, keeps a future for each notification, turns
unknown params into tuples, reads a nested "jsonrpc" key as a message, sends tracebacks to the client, and
shows a popup for late responses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeAlias, TypeGuard

from cattrs import transform_error
from lsprotocol import types
from pydantic import BaseModel, ValidationError
from pygls.protocol import default_converter

from daiku.domain.errors import DaikuError
from daiku.fronts.lsp.initialize import Json
from daiku.fronts.lsp.wire.frames import BadFrame, Frames
from daiku.fronts.lsp.wire.jsontext import (
    MessageId,
    error_response,
    model_json,
    notification,
    read_json,
    request,
    response,
    write_json,
)
from daiku.fronts.lsp.wire.pipes import OutputQueue
from daiku.fronts.lsp.wire.refused import (
    CANCELLED,
    FAILED,
    INTERNAL,
    INVALID_PARAMS,
    INVALID_REQUEST,
    NOT_INITIALIZED,
    PARSE_ERROR,
    UNKNOWN_METHOD,
    RpcError,
    invalid_params,
    problems_of,
)
from daiku.texts.text import ENGLISH, render

log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Json], Awaitable[str]]
"""Maps plain JSON params to JSON text; raises DaikuError, RpcError, or pydantic.ValidationError."""
Listener: TypeAlias = Callable[[Json], None]


class Protocol:
    """One connection. `feed` takes bytes; responses go to `outlet`."""

    def __init__(self) -> None:
        self.outlet: OutputQueue | None = None
        self.handlers: dict[str, Handler] = {}
        self.listeners: dict[str, Listener] = {}
        self.on_exit: Callable[[int], None] = lambda _: None
        self.language = ENGLISH
        """Language of error messages."""
        self.stopped = False
        """True from `shutdown` on."""
        self._is_initialized = False
        self._frames = Frames()
        self._running: dict[MessageId, asyncio.Task[str]] = {}
        self._pending: dict[MessageId, asyncio.Future[Json]] = {}
        self._parts: dict[MessageId, Listener] = {}
        self._last_request_id = 0
        self._converter = _converter()

    # ---- input

    def feed(self, data: bytes) -> None:
        """Handle every complete message."""
        for item in self._frames.feed(data):
            self.receive(item)

    def end(self) -> None:
        """Handle the end of the input: report a truncated message and cancel pending requests to the client."""
        if (cut := self._frames.end()) is not None:
            self.receive(cut)
        for future in self._pending.values():
            if not future.done():
                future.cancel()

    def receive(self, item: bytes | BadFrame) -> None:
        """Handle one message body. Never raises."""
        if isinstance(item, BadFrame):
            self._send(error_response(None, PARSE_ERROR, item.why))
            return
        try:
            message = read_json(item)
        except ValueError as error:
            self._frames.push_back(item)
            self._send(error_response(None, PARSE_ERROR, f"This is no JSON: {str(error)[:200]}"))
            return
        if not isinstance(message, list):
            self._route(message)
        elif message:
            for member in message:
                self._refuse(member, "Batches are no part of the language server protocol.")
        else:
            self._refuse(None, "An empty batch.")

    def _route(self, message: Json) -> None:
        if not isinstance(message, dict):
            self._refuse(None, "A message is a JSON object.")
        elif message.get("jsonrpc") != "2.0":
            self._refuse(message, '"jsonrpc" must be "2.0".')
        elif "method" in message:
            method, params = message["method"], message.get("params")
            if not isinstance(method, str):
                self._refuse(message, '"method" must be a string.')
            elif "id" not in message:
                self._handle_notification(method, params)
            elif _is_id(msg_id := message["id"]):
                self._handle_request(msg_id, method, params)
            else:
                self._refuse(message, '"id" must be a number or a string.')
        elif "id" in message and ("result" in message or "error" in message):
            self._handle_response(message)
        else:
            self._refuse(message, "Neither a request nor a notification nor an answer.")

    def _refuse(self, message: Json, why: str) -> None:
        msg_id = message.get("id") if isinstance(message, dict) else None
        self._send(error_response(msg_id if _is_id(msg_id) else None, INVALID_REQUEST, why))

    # ---- requests of the client

    def _handle_request(self, msg_id: MessageId, method: str, params: Json) -> None:
        try:
            handler = self._admit(msg_id, method, params)
        except RpcError as error:
            self._send(error_response(msg_id, error.code, error.message, error.data))
            return
        task = asyncio.ensure_future(_run(handler, params))
        self._running[msg_id] = task
        # A task that is cancelled before its first step never runs, but its callback does.
        task.add_done_callback(lambda finished: self._finish(msg_id, method, finished))

    def _admit(self, msg_id: MessageId, method: str, params: Json) -> Handler:
        if self.stopped:
            raise RpcError(INVALID_REQUEST, "The server is shutting down.")
        if msg_id in self._running:
            raise RpcError(INVALID_REQUEST, f"A request with id {msg_id!r} is under way.")
        if not self._is_initialized and method != types.INITIALIZE:
            raise RpcError(NOT_INITIALIZED, "Send `initialize` first.")
        handler = self.handlers.get(method)
        if handler is None:
            raise RpcError(UNKNOWN_METHOD, f"Unknown method {method!r}.")
        if params is not None and not isinstance(params, dict | list):
            raise invalid_params(["params must be an object"])
        if method == types.INITIALIZE and self._is_initialized:
            raise RpcError(INVALID_REQUEST, "The server is initialized already.")
        self._is_initialized = True
        # Set immediately: `exit` may follow in the same bytes.
        self.stopped = method == types.SHUTDOWN
        return handler

    def typed_params(self, method: str, params: Json) -> Any:  # lsprotocol's class for the method
        """Convert `params` to lsprotocol's type for `method`. Raises RpcError with every problem."""
        kind: Any = types.METHOD_TO_TYPES[method][2]
        try:
            return self._converter.structure(params, kind)
        except Exception as error:  # noqa: BLE001  # cattrs raises groups, and what its hooks raise
            raise invalid_params(transform_error(error, path="params")) from None

    def _finish(self, msg_id: MessageId, method: str, task: asyncio.Task[str]) -> None:
        del self._running[msg_id]
        if task.cancelled():
            self._send(error_response(msg_id, CANCELLED, "The request was cancelled."))
            return
        match task.exception():
            case None:
                self._send(response(msg_id, task.result()))
            case RpcError() as error:
                self._send(
                    error_response(msg_id, error.code, error.message, self._localize_problems(error.data))
                )
            case ValidationError() as error:
                self._send(error_response(msg_id, INVALID_PARAMS, "Invalid params", problems_of(error)))
            case DaikuError() as error:
                localized = error.failure.in_language(self.language)
                failure = localized.model_dump(include={"kind", "message", "hint"})
                self._send(error_response(msg_id, FAILED, localized.message, failure))
            case error:
                log.error("%s failed", method, exc_info=error)
                self._send(error_response(msg_id, INTERNAL, type(error).__name__))

    def _localize_problems(self, data: Json) -> Json:
        """Translate a list of problems into the client's language."""
        if not isinstance(data, list):
            return data
        return [render(problem, self.language) if isinstance(problem, str) else problem for problem in data]

    # ---- notifications of the client

    def _handle_notification(self, method: str, params: Json) -> None:
        if method == types.EXIT:
            self.on_exit(0 if self.stopped else 1)
        elif method == types.CANCEL_REQUEST:
            self._cancel(params)
        elif method == types.PROGRESS:
            self._handle_progress(params)
        elif (
            self._is_initialized and not self.stopped and (listener := self.listeners.get(method)) is not None
        ):
            try:
                listener(params)
            except RpcError as error:
                log.warning("%s: %s", method, error.data)
            except Exception:
                log.exception("%s failed", method)

    def _cancel(self, params: Json) -> None:
        msg_id = params.get("id") if isinstance(params, dict) else None
        if _is_id(msg_id) and (task := self._running.get(msg_id)) is not None:
            task.cancel()

    def _handle_progress(self, params: Json) -> None:
        if not isinstance(params, dict):
            return
        token = params.get("token")
        if _is_id(token) and (listener := self._parts.get(token)) is not None:
            listener(params.get("value"))

    # ---- requests to the client

    async def ask(self, method: str, params: BaseModel | Json, part: Listener | None = None) -> Json:
        """Send a request to the client and return its result.

        `part` receives `$/progress` with the request's id as token. Cancelling the wait cancels the request.
        Raises RpcError with the client's error.
        """
        self._last_request_id += 1
        msg_id = self._last_request_id
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._pending[msg_id] = future
        if part is not None:
            self._parts[msg_id] = part
        text = model_json(params) if isinstance(params, BaseModel) else write_json(params)
        self._send(request(msg_id, method, text))
        try:
            return await future
        except asyncio.CancelledError:
            self.notify(types.CANCEL_REQUEST, {"id": msg_id})
            raise
        finally:
            self._pending.pop(msg_id, None)
            self._parts.pop(msg_id, None)

    @property
    def next_token(self) -> int:
        """The id, and thus the token, of the next request."""
        return self._last_request_id + 1

    def _handle_response(self, message: dict[str, Json]) -> None:
        msg_id = message["id"]
        future = self._pending.get(msg_id) if _is_id(msg_id) else None
        if future is None or future.done():
            log.debug("an answer that nobody waits for")
        elif isinstance(error := message.get("error"), dict):
            code = error.get("code")
            future.set_exception(
                RpcError(
                    code if isinstance(code, int) else INTERNAL,
                    str(error.get("message", "")),
                    error.get("data"),
                )
            )
        elif "error" in message:
            future.set_exception(RpcError(INTERNAL, "The client answered with a malformed error."))
        else:
            future.set_result(message["result"])

    # ---- output

    def notify(self, method: str, params: Json) -> None:
        """Send a notification to the client."""
        self._send(notification(method, write_json(params)))

    def _send(self, data: bytes) -> None:
        if self.outlet is not None:
            self.outlet.write(data)

    def mark_initialized(self) -> None:
        """Mark the connection as initialized, because `initialize` was answered before it was created."""
        self._is_initialized = True

    def cancel_all(self, but: asyncio.Task[Any] | None = None) -> None:
        """Cancel every active request except `but`."""
        for task in self._running.values():
            if task is not but:
                task.cancel()

    @property
    def running(self) -> tuple[asyncio.Task[str], ...]:
        """The tasks of active requests."""
        return tuple(self._running.values())


# Shared by all connections: it has no state, and creating it dominates the startup time.
_converter = cache(default_converter)


async def _run(handler: Handler, params: Json) -> str:
    return await handler(params)


def _is_id(value: Json) -> TypeGuard[int | float | str]:
    return isinstance(value, int | float | str) and not isinstance(value, bool)

"""JSON-RPC for the language server: every request is answered once, whatever comes in, and nothing piles up.

pygls gives the converter between JSON and lsprotocol's types. Reading, routing, answering and asking are our own:
pygls leaves a request whose params do not fit without an answer, keeps a future for each notification, turns unknown
params into tuples, reads a nested "jsonrpc" key as a message, sends tracebacks to the client and shows a popup when an
answer comes late.
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
    model_json,
    notification,
    read_json,
    refusal,
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
    Refused,
    invalid,
    problems_of,
)
from daiku.texts.catalogue import ENGLISH
from daiku.texts.text import render

log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Json], Awaitable[str]]
"""Plain JSON params to JSON text; raises DaikuError, Refused or pydantic.ValidationError."""
Listener: TypeAlias = Callable[[Json], None]


class Protocol:
    """One connection. `feed` takes bytes; `outlet` is where answers go."""

    def __init__(self) -> None:
        self.outlet: OutputQueue | None = None
        self.handlers: dict[str, Handler] = {}
        self.listeners: dict[str, Listener] = {}
        self.on_exit: Callable[[int], None] = lambda _: None
        self.language = ENGLISH
        """The client's language for failures."""
        self.stopped = False
        """True from `shutdown` on."""
        self._ready = False
        self._frames = Frames()
        self._running: dict[MessageId, asyncio.Task[str]] = {}
        self._asked: dict[MessageId, asyncio.Future[Json]] = {}
        self._parts: dict[MessageId, Listener] = {}
        self._last_asked = 0
        self._converter = _converter()

    # ---- in

    def feed(self, data: bytes) -> None:
        """Handle every message that is whole."""
        for item in self._frames.feed(data):
            self.receive(item)

    def end(self) -> None:
        """Handle the end of the input: report a cut message and cancel pending requests to the client."""
        if (cut := self._frames.end()) is not None:
            self.receive(cut)
        for future in self._asked.values():
            if not future.done():
                future.cancel()

    def receive(self, item: bytes | BadFrame) -> None:
        """Handle one message body. Never raises."""
        if isinstance(item, BadFrame):
            self._say(refusal(None, PARSE_ERROR, item.why))
            return
        try:
            message = read_json(item)
        except ValueError as error:
            self._frames.push_back(item)
            self._say(refusal(None, PARSE_ERROR, f"This is no JSON: {str(error)[:200]}"))
            return
        if not isinstance(message, list):
            self._route(message)
        elif message:
            for each in message:
                self._refuse(each, "Batches are no part of the language server protocol.")
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
                self._notified(method, params)
            elif _is_id(msg_id := message["id"]):
                self._requested(msg_id, method, params)
            else:
                self._refuse(message, '"id" must be a number or a string.')
        elif "id" in message and ("result" in message or "error" in message):
            self._answered(message)
        else:
            self._refuse(message, "Neither a request nor a notification nor an answer.")

    def _refuse(self, message: Json, why: str) -> None:
        msg_id = message.get("id") if isinstance(message, dict) else None
        self._say(refusal(msg_id if _is_id(msg_id) else None, INVALID_REQUEST, why))

    # ---- requests of the client

    def _requested(self, msg_id: MessageId, method: str, params: Json) -> None:
        try:
            handler = self._admit(msg_id, method, params)
        except Refused as error:
            self._say(refusal(msg_id, error.code, error.message, error.data))
            return
        task = asyncio.ensure_future(_run(handler, params))
        self._running[msg_id] = task
        # A task that is cancelled before its first step never runs: only its callback is sure to.
        task.add_done_callback(lambda done: self._finish(msg_id, method, done))

    def _admit(self, msg_id: MessageId, method: str, params: Json) -> Handler:
        if self.stopped:
            raise Refused(INVALID_REQUEST, "The server is shutting down.")
        if msg_id in self._running:
            raise Refused(INVALID_REQUEST, f"A request with id {msg_id!r} is under way.")
        if not self._ready and method != types.INITIALIZE:
            raise Refused(NOT_INITIALIZED, "Send `initialize` first.")
        handler = self.handlers.get(method)
        if handler is None:
            raise Refused(UNKNOWN_METHOD, f"Unknown method {method!r}.")
        if params is not None and not isinstance(params, dict | list):
            raise invalid(["params must be an object"])
        if method == types.INITIALIZE and self._ready:
            raise Refused(INVALID_REQUEST, "The server is initialized already.")
        self._ready = True
        # At once: `exit` may stand in the same bytes.
        self.stopped = method == types.SHUTDOWN
        return handler

    def typed_params(self, method: str, params: Json) -> Any:  # lsprotocol's class for the method
        """`params` as lsprotocol's type for `method`. Raises Refused with every problem."""
        kind: Any = types.METHOD_TO_TYPES[method][2]
        try:
            return self._converter.structure(params, kind)
        except Exception as error:  # noqa: BLE001  # cattrs raises groups, and what its hooks raise
            raise invalid(transform_error(error, path="params")) from None

    def _finish(self, msg_id: MessageId, method: str, task: asyncio.Task[str]) -> None:
        del self._running[msg_id]
        if task.cancelled():
            self._say(refusal(msg_id, CANCELLED, "The request was cancelled."))
            return
        match task.exception():
            case None:
                self._say(response(msg_id, task.result()))
            case Refused() as error:
                self._say(refusal(msg_id, error.code, error.message, self._told(error.data)))
            case ValidationError() as error:
                self._say(refusal(msg_id, INVALID_PARAMS, "Invalid params", problems_of(error)))
            case DaikuError() as error:
                told = error.failure.in_language(self.language)
                failure = told.model_dump(include={"kind", "message", "hint"})
                self._say(refusal(msg_id, FAILED, told.message, failure))
            case error:
                log.error("%s failed", method, exc_info=error)
                self._say(refusal(msg_id, INTERNAL, type(error).__name__))

    def _told(self, data: Json) -> Json:
        """A list of problems in the client's language."""
        if not isinstance(data, list):
            return data
        return [render(each, self.language) if isinstance(each, str) else each for each in data]

    # ---- notifications of the client

    def _notified(self, method: str, params: Json) -> None:
        if method == types.EXIT:
            self.on_exit(0 if self.stopped else 1)
        elif method == types.CANCEL_REQUEST:
            self._cancel(params)
        elif method == types.PROGRESS:
            self._part(params)
        elif self._ready and not self.stopped and (listener := self.listeners.get(method)) is not None:
            try:
                listener(params)
            except Refused as error:
                log.warning("%s: %s", method, error.data)
            except Exception:
                log.exception("%s failed", method)

    def _cancel(self, params: Json) -> None:
        msg_id = params.get("id") if isinstance(params, dict) else None
        if _is_id(msg_id) and (task := self._running.get(msg_id)) is not None:
            task.cancel()

    def _part(self, params: Json) -> None:
        if not isinstance(params, dict):
            return
        token = params.get("token")
        if _is_id(token) and (listener := self._parts.get(token)) is not None:
            listener(params.get("value"))

    # ---- requests of ours

    async def ask(self, method: str, params: BaseModel | Json, part: Listener | None = None) -> Json:
        """Ask the client. `part` hears `$/progress` on the request's own id as token. Giving up the
        wait tells the client. Raises Refused with the client's error."""
        self._last_asked += 1
        msg_id = self._last_asked
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asked[msg_id] = future
        if part is not None:
            self._parts[msg_id] = part
        text = model_json(params) if isinstance(params, BaseModel) else write_json(params)
        self._say(request(msg_id, method, text))
        try:
            return await future
        except asyncio.CancelledError:
            self.notify(types.CANCEL_REQUEST, {"id": msg_id})
            raise
        finally:
            self._asked.pop(msg_id, None)
            self._parts.pop(msg_id, None)

    @property
    def next_token(self) -> int:
        """The id, and so the token, of the next request by `ask`."""
        return self._last_asked + 1

    def _answered(self, message: dict[str, Json]) -> None:
        msg_id = message["id"]
        future = self._asked.get(msg_id) if _is_id(msg_id) else None
        if future is None or future.done():
            log.debug("an answer that nobody waits for")
        elif isinstance(error := message.get("error"), dict):
            code = error.get("code")
            future.set_exception(
                Refused(
                    code if isinstance(code, int) else INTERNAL,
                    str(error.get("message", "")),
                    error.get("data"),
                )
            )
        elif "error" in message:
            future.set_exception(Refused(INTERNAL, "The client answered with a malformed error."))
        else:
            future.set_result(message["result"])

    # ---- out

    def notify(self, method: str, params: Json) -> None:
        """Notify the client."""
        self._say(notification(method, write_json(params)))

    def _say(self, data: bytes) -> None:
        if self.outlet is not None:
            self.outlet.write(data)

    def mark_initialized(self) -> None:
        """Mark the connection as ready: `initialize` was answered before it was created."""
        self._ready = True

    def cancel_all(self, but: asyncio.Task[Any] | None = None) -> None:
        """Cancel every request under way, `but` not the one that asks for it."""
        for task in self._running.values():
            if task is not but:
                task.cancel()

    @property
    def running(self) -> tuple[asyncio.Task[str], ...]:
        """The requests under way."""
        return tuple(self._running.values())


# It keeps nothing of a connection, and making it takes longer than all else of a server.
_converter = cache(default_converter)


async def _run(handler: Handler, params: Json) -> str:
    return await handler(params)


def _is_id(value: Json) -> TypeGuard[int | float | str]:
    return isinstance(value, int | float | str) and not isinstance(value, bool)

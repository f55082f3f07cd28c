"""A live connection to a server, owned by its own task (imported late: the MCP SDK takes half a second)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx2
from mcp import Client, MCPError, types
from mcp.shared.dispatcher import ProgressFnT
from pydantic import JsonValue, ValidationError

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.tools import ToolImage, ToolResult
from daiku.texts.rules.truncate import OUTPUT_LIMIT, truncate_middle
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.mcp.agreement import ask_to_open_page, fill_form
from daiku.tools.mcp.definitions import Listing, build_listing, clean_text, remove_hidden
from daiku.tools.mcp.launch import Launch, McpServerError
from daiku.tools.mcp.transport.oauth import build_auth
from daiku.tools.mcp.transport.server_transport import ServerTransport, open_lenient_transport
from daiku.tools.tool import Ask
from daiku.version import __version__

MAX_BLOCKS = 200
"""Content blocks of one answer."""
MAX_IMAGES = 8
"""Images of one answer."""
MAX_STRUCTURED = 20_000
"""Characters of structured content that are stored."""


def build_result(answer: types.CallToolResult) -> ToolResult:
    """Build the result of a tool call from the server's answer, which is not trusted."""
    text, images = _read_content(answer.content)
    structured: JsonValue = answer.structured_content
    if structured is not None and not text:
        text = json.dumps(structured, ensure_ascii=False, indent=1)
    data: JsonObject | None = None
    if structured is not None and len(json.dumps(structured)) <= MAX_STRUCTURED:
        data = {"structured": structured}
    ok = not answer.is_error
    return build_untrusted(
        text or ("(no output)" if ok else "The tool failed and says nothing more."), ok, images, data
    )


def build_untrusted(
    text: str, ok: bool = True, images: tuple[ToolImage, ...] = (), data: JsonObject | None = None
) -> ToolResult:
    """Build a result of external text: bounded, and marked as untrusted."""
    visible = remove_hidden(text[: OUTPUT_LIMIT * 20])
    bounded_text = truncate_middle(visible, OUTPUT_LIMIT, how="Ask for a smaller part")
    return ToolResult(ok=ok, text=bounded_text, images=images, data=data, untrusted=True)


def format_resource(contents: Sequence[types.TextResourceContents | types.BlobResourceContents]) -> str:
    """Return the contents of a resource; of binary contents only the names."""
    return "\n".join(_format_block(item) for item in contents[:MAX_BLOCKS])


def format_prompt(answer: types.GetPromptResult) -> str:
    """Return the messages of a prompt, each with its role."""
    parts = [f"{item.role}:\n{_read_content((item.content,))[0]}" for item in answer.messages[:MAX_BLOCKS]]
    return "\n\n".join(parts)


def _read_content(content: Sequence[types.ContentBlock]) -> tuple[str, tuple[ToolImage, ...]]:
    lines: list[str] = []
    images: list[ToolImage] = []
    for block in content[:MAX_BLOCKS]:
        match block:
            case types.TextContent():
                lines.append(block.text)
            case types.ImageContent():
                if len(images) < MAX_IMAGES:
                    images.append(ToolImage(media_type=block.mime_type, data=block.data))
                else:
                    lines.append(f"[one more picture: {block.mime_type}, {len(block.data)} characters]")
            case types.AudioContent():
                lines.append(f"[sound: {block.mime_type}, {len(block.data)} characters]")
            case types.ResourceLink():
                description = f" ({block.description})" if block.description else ""
                lines.append(f"[resource {block.uri}: {block.name}{description}]")
            case types.EmbeddedResource():
                lines.append(_format_block(block.resource))
    if len(content) > MAX_BLOCKS:
        lines.append(f"[… {len(content) - MAX_BLOCKS} more parts left out …]")
    return "\n".join(lines), tuple(images)


def _format_block(item: types.TextResourceContents | types.BlobResourceContents) -> str:
    if isinstance(item, types.TextResourceContents):
        return f"[resource {item.uri}]\n{item.text}"
    return f"[resource {item.uri}: {item.mime_type or 'binary'}, {len(item.blob)} characters of base64]"


log = logging.getLogger(__name__)
T = TypeVar("T")
V = TypeVar("V")

MAX_PAGES = 50
"""Pages of one listing."""
RELIST_SECONDS = 0.5
"""Seconds in which several changes of a server count as one."""
LIST_SECONDS = 30.0
"""Seconds for listing the tools again."""


@dataclass(frozen=True, slots=True)
class ConnectionHooks:
    """Callbacks of a connection: `show` gets the sign-in URL, `on_change` runs when the server's offer changes.

    `asker` returns a function that asks the user during a call (None if there is no user).
    """

    asker: Callable[[], Ask | None]
    on_change: Callable[[], None]
    show: Callable[[str], Awaitable[None]]


class McpConnection:
    """A single-use connection that connects when created. Methods raise McpServerError."""

    def __init__(self, launch: Launch, home: Path, hooks: ConnectionHooks) -> None:
        self.name = launch.name
        self.listing = Listing()
        self.ended = asyncio.Event()
        header_names = {name.lower() for name in launch.settings.headers}
        signs_in = launch.settings.url and "authorization" not in header_names
        self._transport = ServerTransport(launch, build_auth(launch, home, hooks.show) if signs_in else None)
        self._roots = launch.roots
        self._hooks = hooks
        self._client: Client | None = None
        self._stop = asyncio.Event()
        self._relist = asyncio.Event()
        self._reason = NO_TEXT
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"mcp {self.name}")

    @property
    def reason(self) -> Text:
        """Why the connection ended by itself, if it did."""
        return self._reason

    async def wait_opened(self) -> None:
        """Wait until the connection is ready. Raises McpServerError."""
        await asyncio.shield(self._opened)

    async def close(self) -> None:
        """Close the connection and stop what it started. Never raises."""
        self._stop.set()
        if not self._opened.done():
            self._task.cancel()
        await asyncio.wait({self._task})
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # mark the exception as retrieved

    async def call(self, tool: str, args: JsonObject, progress: ProgressFnT) -> ToolResult:
        """Call a tool, without a timeout. A cancellation is sent to the server."""
        return build_result(
            await self._request(lambda c: c.call_tool(tool, dict(args), progress_callback=progress))
        )

    async def format_resources(self) -> ToolResult:
        """List all resources, then the resource templates, one per line."""

        async def work(c: Client) -> list[str]:
            resources = _read_pages(c.list_resources, lambda page: page.resources)
            lines = [_format_line(r.uri, r) async for r in resources]
            with contextlib.suppress(MCPError):  # many servers do not support resource templates
                pages = _read_pages(c.list_resource_templates, lambda page: page.resource_templates)
                lines += [_format_line(t.uri_template, t) async for t in pages]
            return lines

        return build_untrusted("\n".join(await self._request(work)) or "(no resources)")

    async def read_resource(self, uri: str) -> ToolResult:
        """Read a resource."""
        answer = await self._request(lambda c: c.read_resource(uri))
        return build_untrusted(format_resource(answer.contents))

    async def format_prompts(self) -> ToolResult:
        """List all prompts with their arguments, one per line."""

        async def work(c: Client) -> list[str]:
            prompts = [p async for p in _read_pages(c.list_prompts, lambda page: page.prompts)]
            return [_format_line(f"{p.name}({_format_parameters(p)})", p) for p in prompts]

        return build_untrusted("\n".join(await self._request(work)) or "(no prompts)")

    async def read_prompt(self, name: str, args: dict[str, str]) -> ToolResult:
        """Return the messages of a prompt, filled in."""
        return build_untrusted(format_prompt(await self._request(lambda c: c.get_prompt(name, args))))

    async def is_alive(self, seconds: float) -> bool:
        """Return True if the server answers within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._request(lambda c: _list_tools(c, first_page=True))
        except TimeoutError:
            return False
        except McpServerError as error:  # a server that returns an error is alive
            return not error.is_lost
        return True

    async def _request(self, work: Callable[[Client], Awaitable[T]]) -> T:
        if self._client is None or self.ended.is_set():
            raise McpServerError(self._explain(text("mcp.not_connected")), is_lost=True)
        try:
            return await work(self._client)
        except Exception as error:
            raise self._to_error(error) from error

    def _to_error(self, error: BaseException) -> McpServerError:
        """Convert an exception of the SDK to a McpServerError."""
        error = _find_cause(error)
        match error:
            case McpServerError():
                return error
            case MCPError(code=types.CONNECTION_CLOSED):
                return McpServerError(self._explain(text("mcp.ended")), is_lost=True)
            case MCPError(message="Session terminated"):
                return McpServerError(text("mcp.forgot_session"), is_lost=True)
            case MCPError():
                details = self._transport.describe_failure()
                message = Text(clean_text(error.message, 2000))
                return McpServerError(
                    text("mcp.and_more", what=message, more=details) if details else message, is_lost=False
                )
            case ValidationError():
                return McpServerError(text("mcp.wrong_answer"), is_lost=False)
            case httpx2.HTTPError() | OSError():
                return McpServerError(self._explain(_clean(str(error) or type(error).__name__)), is_lost=True)
            case _:
                return McpServerError(
                    self._explain(_clean(f"{type(error).__name__}: {error}")), is_lost=False
                )

    def _explain(self, otherwise: Text) -> Text:
        return self._reason or self._transport.describe_failure() or otherwise

    # -- the task that owns the session -----------------------------------------------------

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                transport = await stack.enter_async_context(self._transport.open(self._record_end))
                client = await stack.enter_async_context(
                    Client(
                        open_lenient_transport(transport),
                        client_info=types.Implementation(name="daiku", version=__version__),
                        elicitation_callback=self._elicit,
                        list_roots_callback=self._list_roots if self._roots else None,
                        message_handler=self._handle_message,
                        cache=None,
                    )
                )
                self.listing = await list_all(client)
                self._client = client
                self._opened.set_result(None)
                await self._serve(client)
        except asyncio.CancelledError:
            self._fail(McpServerError(text("mcp.stopped"), is_lost=True))
            if not self._stop.is_set():
                raise
        except Exception as error:  # noqa: BLE001  # an external program may fail in any way
            self._fail(self._to_error(error))
        finally:
            self._client = None
            self.ended.set()

    def _fail(self, error: McpServerError) -> None:
        self._reason = self._reason or error.message
        if not self._opened.done():
            self._opened.set_exception(error)
            self._opened.exception()  # mark the exception as retrieved

    def _record_end(self, reason: Text) -> None:
        """Record that the transport ended by itself."""
        self._reason = self._reason or reason or self._transport.describe_failure() or text("mcp.ended")
        self.ended.set()

    async def _serve(self, client: Client) -> None:
        """List the tools again after changes, until the connection is stopped or ends."""
        listening = asyncio.create_task(self._listen(client))
        try:
            while True:
                waits = [asyncio.create_task(e.wait()) for e in (self._stop, self.ended, self._relist)]
                try:
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in waits:
                        task.cancel()
                if self._stop.is_set() or self.ended.is_set():
                    return
                await asyncio.sleep(RELIST_SECONDS)
                self._relist.clear()
                await self._update_listing(client)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _update_listing(self, client: Client) -> None:
        try:
            async with asyncio.timeout(LIST_SECONDS):
                self.listing = await list_all(client)
        except Exception as error:  # noqa: BLE001  # as above: the previous listing stays
            log.warning("%s told of a change and cannot say what: %s", self.name, self._to_error(error))
            return
        self._hooks.on_change()

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes, which servers of the 2026 protocol report only to subscribers."""
        if client.protocol_version < "2026":
            return
        with contextlib.suppress(Exception):  # a server without subscriptions raises an error
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._relist.set()

    async def _handle_message(self, message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._relist.set()
        elif isinstance(message, types.LoggingMessageNotification):
            log.debug("%s: %.300s", self.name, message.params.data)

    async def _elicit(self, context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        ask = self._hooks.asker()
        if ask is None:
            return types.ElicitResult(action="decline")
        if isinstance(params, types.ElicitRequestURLParams):
            form_result = await ask_to_open_page(self.name, params.message, params.url, ask)
        else:
            form_result = await fill_form(self.name, params.message, params.requested_schema, ask)
        content = cast(Any, form_result.content)  # checked against the form's own schema, field by field
        return types.ElicitResult(action=form_result.action, content=content)

    async def _list_roots(self, context: object) -> types.ListRootsResult:
        roots = [types.Root(uri=root.as_uri(), name=root.name) for root in self._roots]  # pyright: ignore[reportArgumentType]  # pydantic makes the URL
        return types.ListRootsResult(roots=roots)


async def list_all(client: Client) -> Listing:
    """List everything that the server offers, at most MAX_PAGES pages."""
    capabilities = client.server_capabilities
    tools = await _list_tools(client) if capabilities.tools is not None else []
    info = client.server_info
    return build_listing(
        [(tool.name, tool.description or tool.title or "", tool.input_schema) for tool in tools],
        instructions=client.instructions or "",
        resources=capabilities.resources is not None,
        prompts=capabilities.prompts is not None,
        title="" if info is None else f"{info.name} {info.version}",
    )


async def _list_tools(client: Client, *, first_page: bool = False) -> list[types.Tool]:
    if first_page:
        return (await client.list_tools()).tools
    return [tool async for tool in _read_pages(client.list_tools, lambda page: page.tools)]


async def _read_pages(fetch: Callable[..., Awaitable[T]], items: Callable[[T], list[V]]) -> AsyncIterator[V]:
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await fetch(cursor=cursor)
        for item in items(page):
            yield item
        cursor = getattr(page, "next_cursor", None)
        if cursor is None:
            return


def _format_line(head: str, item: types.BaseMetadata) -> str:
    description = getattr(item, "description", None) or item.title or ""
    return f"{head} – {' '.join(description.split())[:300]}" if description else head


def _format_parameters(prompt: types.Prompt) -> str:
    return ", ".join(f"{a.name}{'' if a.required else '?'}" for a in prompt.arguments or ())


def _clean(message: str) -> Text:
    return Text(clean_text(message, 500))


def _find_cause(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        inner = cast("tuple[BaseException, ...]", error.exceptions)
        error = inner[0]
    return error

"""One live connection to a server: opened, listed, called and closed by a task of its own.

Imported late, because the MCP SDK takes half a second to import.
"""

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
from daiku.tools.mcp.definitions import Listing, cleaned, listing, visible
from daiku.tools.mcp.forms import ask_to_open_page, fill_form
from daiku.tools.mcp.launch import Launch, McpServerError
from daiku.tools.mcp.transport.lenient import lenient_transport
from daiku.tools.mcp.transport.oauth import sign_in
from daiku.tools.mcp.transport.server_transport import ServerTransport
from daiku.tools.tool import Ask
from daiku.version import __version__

BLOCKS = 200
IMAGES = 8
STRUCTURED = 20_000


def result_of(answer: types.CallToolResult) -> ToolResult:
    """The answer of a tool call; nothing in it is trusted."""
    text, images = _told(answer.content)
    structured: JsonValue = answer.structured_content
    if structured is not None and not text:
        text = json.dumps(structured, ensure_ascii=False, indent=1)
    data: JsonObject | None = None
    if structured is not None and len(json.dumps(structured)) <= STRUCTURED:
        data = {"structured": structured}
    ok = not answer.is_error
    return untrusted(
        text or ("(no output)" if ok else "The tool failed and says nothing more."), ok, images, data
    )


def untrusted(
    text: str, ok: bool = True, images: tuple[ToolImage, ...] = (), data: JsonObject | None = None
) -> ToolResult:
    """A result of outside text: bounded, marked."""
    shown = truncate_middle(visible(text[: OUTPUT_LIMIT * 20]), OUTPUT_LIMIT, how="Ask for a smaller part")
    return ToolResult(ok=ok, text=shown, images=images, data=data, untrusted=True)


def resource_text(contents: Sequence[types.TextResourceContents | types.BlobResourceContents]) -> str:
    """The contents of a resource; binary ones are only named."""
    return "\n".join(_resource(item) for item in contents[:BLOCKS])


def prompt_text(answer: types.GetPromptResult) -> str:
    """The messages of a prompt, each with its role."""
    parts = [f"{message.role}:\n{_told((message.content,))[0]}" for message in answer.messages[:BLOCKS]]
    return "\n\n".join(parts)


def _told(content: Sequence[types.ContentBlock]) -> tuple[str, tuple[ToolImage, ...]]:
    lines: list[str] = []
    images: list[ToolImage] = []
    for block in content[:BLOCKS]:
        match block:
            case types.TextContent():
                lines.append(block.text)
            case types.ImageContent():
                if len(images) < IMAGES:
                    images.append(ToolImage(media_type=block.mime_type, data=block.data))
                else:
                    lines.append(f"[one more picture: {block.mime_type}, {len(block.data)} characters]")
            case types.AudioContent():
                lines.append(f"[sound: {block.mime_type}, {len(block.data)} characters]")
            case types.ResourceLink():
                about = f" ({block.description})" if block.description else ""
                lines.append(f"[resource {block.uri}: {block.name}{about}]")
            case types.EmbeddedResource():
                lines.append(_resource(block.resource))
    if len(content) > BLOCKS:
        lines.append(f"[… {len(content) - BLOCKS} more parts left out …]")
    return "\n".join(lines), tuple(images)


def _resource(item: types.TextResourceContents | types.BlobResourceContents) -> str:
    if isinstance(item, types.TextResourceContents):
        return f"[resource {item.uri}]\n{item.text}"
    return f"[resource {item.uri}: {item.mime_type or 'binary'}, {len(item.blob)} characters of base64]"


log = logging.getLogger(__name__)
T = TypeVar("T")
V = TypeVar("V")

PAGES = 50
RELIST_SECONDS = 0.5
"""Changes that a server tells within this time are one change."""
LIST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Asks:
    """What a connection may want: an answer of the person in the middle of a call (None where nobody is there), a
    sign-in (`show` gets the address), and whoever hears that the server offers something else."""

    asker: Callable[[], Ask | None]
    changed: Callable[[], None]
    show: Callable[[str], Awaitable[None]]


class McpConnection:
    """Opened once, closed once. It begins to connect when it is made. Methods raise McpServerError."""

    def __init__(self, launch: Launch, home: Path, asks: Asks) -> None:
        self.name = launch.name
        self.listing = Listing()
        self.ended = asyncio.Event()
        named = {name.lower() for name in launch.settings.headers}
        signs_in = launch.settings.url and "authorization" not in named
        self._transport = ServerTransport(launch, sign_in(launch, home, asks.show) if signs_in else None)
        self._roots = launch.roots
        self._asks = asks
        self._client: Client | None = None
        self._stop = asyncio.Event()
        self._relist = asyncio.Event()
        self._reason = NO_TEXT
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(), name=f"mcp {self.name}")

    @property
    def reason(self) -> Text:
        """Why it ended, where it did by itself."""
        return self._reason

    async def wait_opened(self) -> None:
        """Wait until the connection is ready. Raises McpServerError."""
        await asyncio.shield(self._opened)

    async def close(self) -> None:
        """End it and what it started; never raises."""
        self._stop.set()
        if not self._opened.done():
            self._task.cancel()
        await asyncio.wait({self._task})
        if self._opened.done() and not self._opened.cancelled():
            self._opened.exception()  # whoever did not wait for it need not hear of it

    async def call(self, tool: str, args: JsonObject, progress: ProgressFnT) -> ToolResult:
        """Call a tool; no time limit of its own. Cancelling it tells the server."""
        return result_of(await self._ask(lambda c: c.call_tool(tool, dict(args), progress_callback=progress)))

    async def resources(self) -> ToolResult:
        """All resources, then the templates of resources, one a line."""

        async def work(c: Client) -> list[str]:
            lines = [_line(r.uri, r) async for r in _pages(c.list_resources, lambda page: page.resources)]
            with contextlib.suppress(MCPError):  # many servers have no templates and do not know the question
                pages = _pages(c.list_resource_templates, lambda page: page.resource_templates)
                lines += [_line(t.uri_template, t) async for t in pages]
            return lines

        return untrusted("\n".join(await self._ask(work)) or "(no resources)")

    async def read(self, uri: str) -> ToolResult:
        """The contents of one resource."""
        return untrusted(resource_text((await self._ask(lambda c: c.read_resource(uri))).contents))

    async def prompts(self) -> ToolResult:
        """All prompts with their arguments, one a line."""

        async def work(c: Client) -> list[str]:
            found = [p async for p in _pages(c.list_prompts, lambda page: page.prompts)]
            return [_line(f"{p.name}({_parameters(p)})", p) for p in found]

        return untrusted("\n".join(await self._ask(work)) or "(no prompts)")

    async def prompt(self, name: str, args: dict[str, str]) -> ToolResult:
        """The messages of one prompt, filled in."""
        return untrusted(prompt_text(await self._ask(lambda c: c.get_prompt(name, args))))

    async def alive(self, seconds: float) -> bool:
        """Whether it answers within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._ask(lambda c: _list_tools(c, first_page=True))
        except TimeoutError:
            return False
        except McpServerError as error:  # a server that refuses the question is there to refuse it
            return not error.gone
        return True

    async def _ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        if self._client is None or self.ended.is_set():
            raise McpServerError(self._said(text("mcp.not_connected")), gone=True)
        try:
            return await work(self._client)
        except Exception as error:
            raise self._broken(error) from error

    def _broken(self, error: BaseException) -> McpServerError:
        """The one place where what the SDK raises is translated."""
        error = _leaf(error)
        match error:
            case McpServerError():
                return error
            case MCPError(code=types.CONNECTION_CLOSED):
                return McpServerError(self._said(text("mcp.ended")), gone=True)
            case MCPError(message="Session terminated"):
                return McpServerError(text("mcp.forgot_session"), gone=True)
            case MCPError():
                more = self._transport.why()
                said = Text(cleaned(error.message, 2000))
                return McpServerError(
                    text("mcp.and_more", what=said, more=more) if more else said, gone=False
                )
            case ValidationError():
                return McpServerError(text("mcp.wrong_answer"), gone=False)
            case httpx2.HTTPError() | OSError():
                return McpServerError(self._said(_own_words(str(error) or type(error).__name__)), gone=True)
            case _:
                return McpServerError(self._said(_own_words(f"{type(error).__name__}: {error}")), gone=False)

    def _said(self, otherwise: Text) -> Text:
        return self._reason or self._transport.why() or otherwise

    # -- the task that owns the session -----------------------------------------------------

    async def _live(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                transport = await stack.enter_async_context(self._transport.transport(self._over))
                client = await stack.enter_async_context(
                    Client(
                        lenient_transport(transport),
                        client_info=types.Implementation(name="daiku", version=__version__),
                        elicitation_callback=self._elicit,
                        list_roots_callback=self._list_roots if self._roots else None,
                        message_handler=self._hear,
                        cache=None,
                    )
                )
                self.listing = await list_all(client)
                self._client = client
                self._opened.set_result(None)
                await self._serve(client)
        except asyncio.CancelledError:
            self._fail(McpServerError(text("mcp.stopped"), gone=True))
            if not self._stop.is_set():
                raise
        except Exception as error:  # noqa: BLE001  # a stranger's program may fail in any way; it must not end ours
            self._fail(self._broken(error))
        finally:
            self._client = None
            self.ended.set()

    def _fail(self, broken: McpServerError) -> None:
        self._reason = self._reason or broken.why
        if not self._opened.done():
            self._opened.set_exception(broken)
            self._opened.exception()  # it may be that nobody waits

    def _over(self, why: Text) -> None:
        """The transport ended by itself."""
        self._reason = self._reason or why or self._transport.why() or text("mcp.ended")
        self.ended.set()

    async def _serve(self, client: Client) -> None:
        """Until stopped or ended: hear of changes."""
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
                await self._list_again(client)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _list_again(self, client: Client) -> None:
        try:
            async with asyncio.timeout(LIST_SECONDS):
                self.listing = await list_all(client)
        except Exception as error:  # noqa: BLE001  # as above: what it offered before stays
            log.warning("%s told of a change and cannot say what: %s", self.name, self._broken(error))
            return
        self._asks.changed()

    async def _listen(self, client: Client) -> None:
        """Servers of the 2026 protocol tell of changes only to who listens."""
        if client.protocol_version < "2026":
            return
        with contextlib.suppress(Exception):  # a server without subscriptions says so: then it tells nothing
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._relist.set()

    async def _hear(self, message: types.ServerNotification | Exception) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._relist.set()
        elif isinstance(message, types.LoggingMessageNotification):
            log.debug("%s: %.300s", self.name, message.params.data)

    async def _elicit(self, context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        ask = self._asks.asker()
        if ask is None:
            return types.ElicitResult(action="decline")
        if isinstance(params, types.ElicitRequestURLParams):
            filled = await ask_to_open_page(self.name, params.message, params.url, ask)
        else:
            filled = await fill_form(self.name, params.message, params.requested_schema, ask)
        content = cast(Any, filled.content)  # checked against the form's own schema, field by field
        return types.ElicitResult(action=filled.action, content=content)

    async def _list_roots(self, context: object) -> types.ListRootsResult:
        roots = [types.Root(uri=root.as_uri(), name=root.name) for root in self._roots]  # pyright: ignore[reportArgumentType]  # pydantic makes the URL
        return types.ListRootsResult(roots=roots)


async def list_all(client: Client) -> Listing:
    """All that the server offers, pages read to a limit."""
    has = client.server_capabilities
    tools = await _list_tools(client) if has.tools is not None else []
    info = client.server_info
    return listing(
        [(tool.name, tool.description or tool.title or "", tool.input_schema) for tool in tools],
        instructions=client.instructions or "",
        resources=has.resources is not None,
        prompts=has.prompts is not None,
        title="" if info is None else f"{info.name} {info.version}",
    )


async def _list_tools(client: Client, *, first_page: bool = False) -> list[types.Tool]:
    if first_page:
        return (await client.list_tools()).tools
    return [tool async for tool in _pages(client.list_tools, lambda page: page.tools)]


async def _pages(ask: Callable[..., Awaitable[T]], items: Callable[[T], list[V]]) -> AsyncIterator[V]:
    cursor: str | None = None
    for _ in range(PAGES):
        page = await ask(cursor=cursor)
        for item in items(page):
            yield item
        cursor = getattr(page, "next_cursor", None)
        if cursor is None:
            return


def _line(head: str, item: types.BaseMetadata) -> str:
    about = getattr(item, "description", None) or item.title or ""
    return f"{head} – {' '.join(about.split())[:300]}" if about else head


def _parameters(prompt: types.Prompt) -> str:
    return ", ".join(f"{a.name}{'' if a.required else '?'}" for a in prompt.arguments or ())


def _own_words(said: str) -> Text:
    return Text(cleaned(said, 500))


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        inner = cast("tuple[BaseException, ...]", error.exceptions)
        error = inner[0]
    return error

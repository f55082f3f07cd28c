"""What a server answers, as a ToolResult: text bounded, pictures kept, the rest named."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mcp import types
from pydantic import JsonValue

from daiku.core.text.truncate import OUTPUT_LIMIT, truncate_middle
from daiku.domain.base import JsonObject
from daiku.domain.tools import ToolImage, ToolResult
from daiku.tools.mcp.definitions import visible

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

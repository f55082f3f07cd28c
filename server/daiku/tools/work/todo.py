"""todo/write: the model's own list of what is to do, which needs nobody's yes and which the person sees."""

from __future__ import annotations

from collections import Counter

from pydantic import Field

from daiku.core.text.visible import show_hidden
from daiku.domain.held import Todo, TodoItem, TodoStatus
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
from daiku.tools.tool import Args, Tool, ToolContext

MOST_ITEMS = 50
LONGEST_TITLE = 200


class Item(Args):
    title: str = Field(min_length=1, max_length=LONGEST_TITLE, description="a few words")
    status: TodoStatus = Field(default="pending", description="where it stands")


class TodoArgs(Args):
    items: tuple[Item, ...] = Field(max_length=MOST_ITEMS, description="the done ones too")


async def write(args: TodoArgs, context: ToolContext) -> ToolResult:
    """Put the list in place of the one before."""
    items = tuple(
        TodoItem(title=show_hidden(" ".join(each.title.split())), status=each.status) for each in args.items
    )
    context.emit(Todo(items=items))
    counts = Counter(item.status for item in items)
    said = f"{counts['completed']} done, {counts['in_progress']} in progress, {counts['pending']} to do."
    if counts["in_progress"] > 1:
        said += " Better have one item in progress at a time."
    return ToolResult(ok=True, text=said if items else "The list is empty now.")


TODO_TOOLS = (
    Tool(
        "todo/write", "none", TodoArgs, write,
        face=Face("checklist", Label("Todo list", "やることリスト")),
        description="Keep your list of steps; the person sees it. Send all of it each time.",
    ),
)  # fmt: skip

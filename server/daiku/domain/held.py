"""What a conversation holds beside what is said: rules, memories, results that were shortened, the todo list."""

from typing import ClassVar, Literal

from daiku.domain.base import Wire


class RulesText(Wire):
    """A rules file below a root, as it is told to the model; without trust it is data."""

    path: str
    text: str
    trusted: bool = True


class Recalled(Wire):
    """Something remembered from earlier sessions that fits the request, and how well (0 to 1)."""

    id: str
    text: str
    score: float


class ShortenedResult(Wire):
    """The result of the call `call_id`, the message `at` (from 0) of the conversation, reads `text` from now on."""

    at: int
    call_id: str
    text: str


class Compacted(Wire):
    """History up to here was replaced by `summary`; the last `kept` messages stay as they are. The model is told
    of the files beside the summary: those that it only read, and those that were changed."""

    type: ClassVar[str] = "compacted"
    summary: str
    kept: int
    before_tokens: int = 0
    after_tokens: int = 0
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()


class Pruned(Wire):
    """Results of tools that the model no longer needs in full were shortened to save room."""

    type: ClassVar[str] = "pruned"
    results: tuple[ShortenedResult, ...]
    before_tokens: int = 0
    after_tokens: int = 0


TodoStatus = Literal["pending", "in_progress", "completed"]


class TodoItem(Wire):
    """One thing to do, as the model wrote it for itself."""

    title: str
    status: TodoStatus = "pending"


class Todo(Wire):
    """The model's list of what is to do, whole: it takes the place of the one before."""

    type: ClassVar[str] = "todo"
    items: tuple[TodoItem, ...]

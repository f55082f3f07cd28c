"""Conversation data besides messages: rules, memories, lessons, shortened results, and reflections on a run."""

from typing import ClassVar, Literal, TypeAlias

from daiku.domain.base import Wire
from daiku.domain.labels import Label, Line, LineCase, LineEvent


class RulesText(Wire):
    """Text of a rules file below a root, as sent to the model; untrusted rules are data."""

    path: str
    text: str
    trusted: bool = True


class Recalled(Wire):
    """A memory of earlier sessions that matches the request, with its score (0 to 1)."""

    id: str
    text: str
    score: float


class Lesson(Wire):
    """A playbook bullet as sent to a run; `version` increases with every change of its text."""

    id: str
    version: int
    text: str


class ShortenedResult(Wire):
    """New `text` for the result of the call `call_id`, at index `at` (0-based) of the conversation."""

    at: int
    call_id: str
    text: str


class Compacted(Wire):
    """Replacement of the history so far by `summary`; the last `kept` messages stay unchanged.

    The model is also sent the names of the files that were read or changed.
    """

    type: ClassVar[str] = "compacted"
    summary: str
    kept: int
    before_tokens: int = 0
    after_tokens: int = 0
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()


class Pruned(Wire):
    """Shortening of tool results that the model no longer needs in full, to save context."""

    type: ClassVar[str] = "pruned"
    results: tuple[ShortenedResult, ...]
    before_tokens: int = 0
    after_tokens: int = 0


TodoStatus = Literal["pending", "in_progress", "completed"]


class TodoItem(Wire):
    """One entry of the model's to-do list."""

    title: str
    status: TodoStatus = "pending"


class Todo(Wire):
    """The model's complete to-do list, which replaces the previous one."""

    type: ClassVar[str] = "todo"
    items: tuple[TodoItem, ...]


Tag: TypeAlias = Literal["helpful", "harmful", "neutral"]
OperationType: TypeAlias = Literal["ADD", "UPDATE", "MERGE", "REMOVE"]


class BulletTag(Wire):
    """A Reflector's verdict on one bullet that a run received."""

    id: str
    tag: Tag


class Reflection(Wire):
    """A Reflector's analysis of a run (B3.3).

    Reasoning, errors, root cause, correct approach, insights, and a verdict on each bullet.
    """

    reasoning: str = ""
    error_identification: str = ""
    root_cause_analysis: str = ""
    correct_approach: str = ""
    key_insight: str = ""
    insights: tuple[str, ...] = ()
    tags: tuple[BulletTag, ...] = ()


class CurationOperation(Wire):
    """One playbook change that a Curator requests (B3.4). `id` is the bullet to change, `ids` those to merge."""

    type: OperationType
    section: str = ""
    content: str = ""
    id: str = ""
    ids: tuple[str, ...] = ()


class Reflected(LineEvent):
    """A model's reflection on the surrounding run, and the playbook operations that it requests.

    Neither is applied by this event.
    """

    type: ClassVar[str] = "reflected"
    reflection: Reflection
    operations: tuple[CurationOperation, ...] = ()


class Bullet(LineEvent):
    """A playbook bullet that was added, changed, removed, or `proposed` for review."""

    type: ClassVar[str] = "bullet"
    line: ClassVar[Line | None] = Line(
        "lightbulb",
        Label("Learned: {content}", "学習しました: {content}"),
        (
            LineCase(
                "change",
                "proposed",
                Label(
                    "Waits for your review: {content}\n`daiku playbook review` asks you about it.",
                    "確認待ちの教訓: {content}\n`daiku playbook review` で採否を決められます。",
                ),
                Label(
                    "Lesson pending review in the Playbook view: {content}",
                    "「プレイブック」ビューで確認待ちの教訓: {content}",
                ),
            ),
        ),
    )
    bullet_id: str
    change: str
    content: str
    why: str

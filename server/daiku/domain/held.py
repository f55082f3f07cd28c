"""What a conversation holds beside what is said: rules, memories, lessons, shortened results, what a model made of a run."""

from typing import ClassVar, Literal, TypeAlias

from daiku.domain.base import Wire
from daiku.domain.labels import Label, Line, LineCase, LineEvent


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


class Lesson(Wire):
    """A bullet of the playbook as a run was told it; its `version` rises with every change of its text."""

    id: str
    version: int
    text: str


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


Tag: TypeAlias = Literal["helpful", "harmful", "neutral"]
OperationType: TypeAlias = Literal["ADD", "UPDATE", "MERGE", "REMOVE"]


class BulletTag(Wire):
    """What a Reflector says of one bullet that a run was told."""

    id: str
    tag: Tag


class Reflection(Wire):
    """B3.3: why a run went as it did, what was wrong in it and why, what would have been right; what is worth keeping of
    that, and what each bullet was worth."""

    reasoning: str = ""
    error_identification: str = ""
    root_cause_analysis: str = ""
    correct_approach: str = ""
    key_insight: str = ""
    insights: tuple[str, ...] = ()
    tags: tuple[BulletTag, ...] = ()


class CurationOperation(Wire):
    """B3.4: one change that a Curator asks for. `id` is the bullet that it is about, `ids` those that are merged."""

    type: OperationType
    section: str = ""
    content: str = ""
    id: str = ""
    ids: tuple[str, ...] = ()


class Reflected(LineEvent):
    """What a model made of the run around, which had ended (issue 12): what it saw in it, and the changes of the playbook
    that it asks for. Neither is carried out by being here."""

    type: ClassVar[str] = "reflected"
    reflection: Reflection
    operations: tuple[CurationOperation, ...] = ()


class Bullet(LineEvent):
    """An entry of the playbook was added, changed or removed, or (`proposed`) waits for a person; the playbook tells of it
    (issue 12)."""

    type: ClassVar[str] = "bullet"
    line: ClassVar[Line | None] = Line(
        "lightbulb",
        Label("Learnt: {content}", "学習しました: {content}"),
        (
            LineCase(
                "change",
                "proposed",
                Label(
                    "Waits for your review: {content}\n`daiku playbook review` asks you about it.",
                    "確認待ちの教訓: {content}\n`daiku playbook review` で採否を決められます。",
                ),
                Label(
                    "Waits for your review in the view Playbook: {content}",
                    "ビュー「プレイブック」で確認待ちの教訓: {content}",
                ),
            ),
        ),
    )
    bullet_id: str
    change: str
    content: str
    why: str

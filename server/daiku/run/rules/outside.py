"""Protocols for what the core needs from outside: workspace, editor, checkpoints, grants."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.guardrails import GuardrailAnswer
from daiku.domain.held import Lesson
from daiku.domain.runs import Position, Range, Route
from daiku.domain.servers import Consent
from daiku.domain.work.patches import FileStat, Patch


@dataclass(frozen=True, slots=True)
class TextFile:
    """Current text of a file: the unsaved editor buffer, else the disk. `text` keeps its line endings."""

    path: str
    """Path relative to its root, with `/`; with several roots, prefixed with the root's folder name."""
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    version: int | None = None
    """The editor's document version; None if it is not open."""


class Workspace(Protocol):
    """Files that a run may read and change. Paths are resolved and confined at the moment of use."""

    @property
    def roots(self) -> tuple[Path, ...]: ...

    def locate(self, path: str) -> Path:
        """Return the real path. Raises ToolValidationError if it is outside every root."""
        ...

    def relative(self, path: Path) -> str:
        """Return the path as displayed to models and users."""
        ...

    def hidden(self, path: Path) -> bool:
        """Return True if the agent may not access the file under any name.

        Hidden: listed in .daikuignore, part of version control, or a git-ignored file that looks like
        secrets.
        """
        ...

    def closed(self, path: Path) -> bool:
        """Return True if .daikuignore lists it."""
        ...

    def ignored(self, path: Path) -> bool:
        """Return True if it is excluded from listings: git-ignored, or closed."""
        ...

    async def read(self, path: str) -> TextFile:
        """Read a text file. Raises ToolValidationError: missing, a folder, binary, too large, special, outside."""
        ...

    async def exists(self, path: str) -> bool: ...

    async def apply(self, patch: Patch, label: str, *, exact: bool = False) -> tuple[FileStat, ...]:
        """Apply all of `patch` or nothing.

        `exact`: restore texts exactly, even if the editor formats on save. Raises StaleVersionError if a file
        is no longer the `old` text of its change.
        """
        ...


class Checkpoints(Protocol):
    """File contents before edits, stored by content; they survive restarts."""

    @property
    def change_lock(self) -> asyncio.Lock:
        """Return the lock to hold from reading files until their change is recorded."""
        ...

    async def take(self, session: str, run: str, paths: Sequence[str], patch: Patch | None = None) -> str:
        """Store the current bytes of `paths` (absent ones too) and the planned `patch`; return the checkpoint id."""
        ...

    async def settle(self, checkpoint_id: str, patch: Patch) -> None:
        """Record the final result of an edit that the editor changed further (such as its formatter)."""
        ...

    async def compare(self, checkpoint_id: str) -> tuple[Patch, Patch] | None:
        """Return the changes of an edit that the files have, and those missing; None if a file matches neither."""
        ...

    def has(self, checkpoint_id: str) -> bool:
        """Return True if the checkpoint exists here; old ones are deleted."""
        ...

    async def restore(self, checkpoint_id: str) -> tuple[FileStat, ...]:
        """Restore every file of it and of the session's later checkpoints. Raises UsageError."""
        ...

    def swept(self) -> int:
        """Return the number of old checkpoints deleted since the last call."""
        ...


@dataclass(frozen=True, slots=True)
class Diagnostic:
    path: str
    range: Range
    severity: Literal["error", "warning", "info", "hint"]
    message: str
    source: str = ""
    cell: int | None = None
    """In a notebook: the cell's number, from 1; `range` then counts lines of the notebook's text form."""


@dataclass(frozen=True, slots=True)
class Location:
    path: str
    range: Range


class Editor(Protocol):
    """Information from a connected editor; absent in a terminal."""

    async def diagnostics(self, path: str | None) -> tuple[Diagnostic, ...]: ...

    async def settled(self, paths: Sequence[str]) -> tuple[Diagnostic, ...]:
        """Return the up-to-date diagnostics of `paths` (with a time limit), and the errors of other files.

        Raises DaikuError if the editor cannot provide them.
        """
        ...

    async def definition(self, path: str, position: Position) -> tuple[Location, ...]: ...

    async def references(self, path: str, position: Position) -> tuple[Location, ...]: ...

    def open_files(self) -> tuple[str, ...]: ...


class Terminals(Protocol):
    """Terminals of a connected editor, visible to the user. Methods raise TerminalFailed."""

    async def create(self, call_id: str, command: Sequence[str], cwd: Path) -> str:
        """Start `command` for a tool call; return the terminal's id."""
        ...

    async def wait(self, terminal: str) -> int:
        """Wait for the command to end; return its exit code."""
        ...

    async def output(self, terminal: str) -> str:
        """Return the output so far."""
        ...

    async def kill(self, terminal: str) -> None: ...

    async def release(self, terminal: str) -> None:
        """Release the terminal; the user may keep it open."""
        ...


class TerminalFailed(Exception):
    """The editor's terminal failed; the caller runs the command itself."""


class LanguageModelBridge(Protocol):
    """Models of the editor (vscode.lm), used through `daiku/languageModel`.

    The JSON has the shapes of `daiku.api`: EditorModel, LanguageModelMessage, LanguageModelTool, Part,
    LanguageModelResult. Methods raise LLMError; cancelling `request` cancels it in the editor.
    """

    async def list_models(self) -> tuple[JsonObject, ...]: ...

    async def request(
        self,
        model: str,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject],
        part: Callable[[JsonObject], None] | None = None,
    ) -> JsonObject:
        """Request a reply and return all of it; `part` is called with each part as it arrives."""
        ...


class Grants(Protocol):
    """Permanent approvals and rejections per workspace; revocable."""

    def lookup(self, workspace: str, key: str) -> Literal["allow", "reject"] | None: ...

    def remember(self, workspace: str, key: str, answer: Literal["allow", "reject"]) -> None: ...

    def revoke(self, workspace: str, key: str) -> None: ...

    def all(self, workspace: str) -> tuple[tuple[str, str], ...]: ...


class Consents(Protocol):
    """MCP servers that the user consented to, per workspace, with the tools they offered at that time."""

    def lookup(self, workspace: str, server: str) -> Consent | None: ...

    def remember(self, workspace: str, server: str, consent: Consent) -> None: ...

    def forget(self, workspace: str, server: str) -> None: ...


class Guard(Protocol):
    """Guardrail of an agent or a run."""

    @property
    def judges_output(self) -> bool:
        """True if it may block an output; then a reply is buffered until it has passed."""
        ...

    async def validate_input(self, data: object) -> GuardrailAnswer:
        """Check the request of a run."""
        ...

    async def validate_output(self, data: object) -> GuardrailAnswer:
        """Check the final answer of a run."""
        ...

    async def screen_input(self, data: object) -> GuardrailAnswer:
        """Check other user input: context of a request, messages during a run."""
        ...

    async def screen_output(self, data: object) -> GuardrailAnswer:
        """Check other model output: call arguments, text next to calls."""
        ...


class Router(Protocol):
    """Chooses the agents for a request."""

    async def route(
        self,
        question: str,
        *,
        agents: Mapping[str, str] | None = None,
        model: Callable[[str], Any] | None = None,
    ) -> Route:
        """Return the agents for `question`.

        `agents`: descriptions by agent name. `model`: resolves a model name. Raises UsageError: unknown
        model.
        """
        ...


@dataclass(frozen=True, slots=True)
class Recollection:
    """A memory that matches a question, with its score (0 to 1)."""

    id: str
    text: str
    score: float


class Remembers(Protocol):
    """Memory of agents and runs: short-term per session, long-term per user."""

    async def recall(self, question: str, *, session: str = "") -> tuple[Recollection, ...]:
        """Return the memories that match `question`, best first."""
        ...

    async def remember(self, text: str, *, session: str = "", origin: str = "") -> str:
        """Store `text`; return its id, empty if it was not stored."""
        ...

    async def search(self, question: str, most: int = 10) -> tuple[Recollection, ...]:
        """Return the best matches for `question` by words and vectors, however low their scores."""
        ...

    async def forget(self, memory_id: str) -> bool:
        """Delete the memory with this id; return True if it existed."""
        ...


@dataclass(frozen=True, slots=True)
class FoundLesson:
    """A playbook lesson that matches a question, with its score (0 to 1).

    `resting`: disabled, because runs that followed it failed too often.
    """

    lesson: Lesson
    section: str
    score: float
    resting: bool = False


class Advises(Protocol):
    """Playbooks as runs and tools use them."""

    async def recall(
        self, question: str, *, personal: bool = True, window: int = 0, working: bool = False
    ) -> tuple[Lesson, ...]:
        """Return the lessons for a run, best first.

        `personal`: include the user's own playbook. `window`: the model's context window in tokens, 0 if
        unknown. `working`: the run may change files.
        """
        ...

    async def search(self, question: str, most: int = 0, *, personal: bool = True) -> tuple[FoundLesson, ...]:
        """Return the lessons that match `question` best, at most `most` (0: the default limit)."""
        ...

"""What the core needs from outside, as protocols: the workspace, the editor, checkpoints, grants."""

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
    """A text as it stands: unsaved buffer first, else the disk. `text` keeps its line ends."""

    path: str
    """Relative to its root, with `/`; with several roots prefixed by the root's folder name."""
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    version: int | None = None
    """The editor's document version; None when it is not open there."""


class Workspace(Protocol):
    """The files a run may see and change. Paths are resolved and jailed here, at the moment of use."""

    @property
    def roots(self) -> tuple[Path, ...]: ...

    def locate(self, path: str) -> Path:
        """The real place of `path`; raises ToolValidationError when it is outside every root."""
        ...

    def relative(self, path: Path) -> str:
        """How `path` is named to models and people."""
        ...

    def hidden(self, path: Path) -> bool:
        """True where it is closed to the agent, however it is named: .daikuignore says so, it is version
        control's own, or git ignores it and it looks like a file of secrets."""
        ...

    def closed(self, path: Path) -> bool:
        """True where .daikuignore closes it to the agent."""
        ...

    def ignored(self, path: Path) -> bool:
        """True where it is not listed, and found only where it is named: git ignores it, or it is closed."""
        ...

    async def read(self, path: str) -> TextFile:
        """Read a text file. Raises ToolValidationError: missing, a folder, binary, too large, special, outside."""
        ...

    async def exists(self, path: str) -> bool: ...

    async def apply(self, patch: Patch, label: str, *, exact: bool = False) -> tuple[FileStat, ...]:
        """Apply all of `patch` or nothing. Raises StaleVersionError where a file is no longer the
        `old` text that its change was made against. `exact`: also an editor that formats what it
        saves has the last word no more: the texts come to stand as they are, as when they are restored."""
        ...


class Checkpoints(Protocol):
    """The files as they were before an edit, kept by content; survives restarts."""

    @property
    def change_lock(self) -> asyncio.Lock:
        """Return the lock to hold from reading files until their change is recorded."""
        ...

    async def take(self, session: str, run: str, paths: Sequence[str], patch: Patch | None = None) -> str:
        """Keep the present bytes of `paths` (absent ones too), and what `patch` is to make of them; the
        checkpoint's id."""
        ...

    async def settle(self, checkpoint_id: str, patch: Patch) -> None:
        """Record the final result of an edit that the editor changed further (e.g. its formatter)."""
        ...

    async def compare(self, checkpoint_id: str) -> tuple[Patch, Patch] | None:
        """Return the changes of an edit that the files show, and those that they do not; None if some show neither."""
        ...

    def has(self, checkpoint_id: str) -> bool:
        """Whether it is there: old ones go, and another machine has its own."""
        ...

    async def restore(self, checkpoint_id: str) -> tuple[FileStat, ...]:
        """Bring back every file of it and of the session's later checkpoints. Raises UsageError."""
        ...

    def swept(self) -> int:
        """Return how many old checkpoints were deleted since the last call."""
        ...


@dataclass(frozen=True, slots=True)
class Diagnostic:
    path: str
    range: Range
    severity: Literal["error", "warning", "info", "hint"]
    message: str
    source: str = ""
    cell: int | None = None
    """In a notebook: the cell's number, from 1; `range` then counts the lines of the notebook's text form."""


@dataclass(frozen=True, slots=True)
class Location:
    path: str
    range: Range


class Editor(Protocol):
    """What a connected editor can tell beyond files; absent in a terminal."""

    async def diagnostics(self, path: str | None) -> tuple[Diagnostic, ...]: ...

    async def settled(self, paths: Sequence[str]) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of `paths` once they are up to date (with a time limit), and the errors of
        all other files. Raises DaikuError if the editor cannot provide them."""
        ...

    async def definition(self, path: str, position: Position) -> tuple[Location, ...]: ...

    async def references(self, path: str, position: Position) -> tuple[Location, ...]: ...

    def open_files(self) -> tuple[str, ...]: ...


class Terminals(Protocol):
    """Terminals of a connected editor, in which the person watches a command. What the editor cannot do raises
    TerminalFailed."""

    async def create(self, call_id: str, command: Sequence[str], cwd: Path) -> str:
        """Start `command` for a tool call; the terminal's name."""
        ...

    async def wait(self, terminal: str) -> int:
        """Wait for the end of the command; its exit code."""
        ...

    async def output(self, terminal: str) -> str:
        """Return what was printed so far."""
        ...

    async def kill(self, terminal: str) -> None: ...

    async def release(self, terminal: str) -> None:
        """Let go of the terminal; the person may go on looking at it."""
        ...


class TerminalFailed(Exception):
    """The editor did not do what was asked of a terminal of its own; the caller runs the command itself."""


class LanguageModelBridge(Protocol):
    """The editor's own models (vscode.lm), reached through `daiku/languageModel`.

    The JSON has the shapes of `daiku.api`: EditorModel; LanguageModelMessage, LanguageModelTool, Part,
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
    """What a person allowed or rejected for always, per workspace; revocable."""

    def lookup(self, workspace: str, key: str) -> Literal["allow", "reject"] | None: ...

    def remember(self, workspace: str, key: str, answer: Literal["allow", "reject"]) -> None: ...

    def revoke(self, workspace: str, key: str) -> None: ...

    def all(self, workspace: str) -> tuple[tuple[str, str], ...]: ...


class Consents(Protocol):
    """Which MCP servers a person agreed to, per workspace, and what those offered then."""

    def lookup(self, workspace: str, server: str) -> Consent | None: ...

    def remember(self, workspace: str, server: str, consent: Consent) -> None: ...

    def forget(self, workspace: str, server: str) -> None: ...


class Guard(Protocol):
    """A guardrail as agents and runs hold it (R1.13)."""

    @property
    def judges_output(self) -> bool:
        """Whether it may block an output: then nothing of one is shown before it has passed."""
        ...

    async def validate_input(self, data: object) -> GuardrailAnswer:
        """Judge what a run is asked."""
        ...

    async def validate_output(self, data: object) -> GuardrailAnswer:
        """Judge what a run answers."""
        ...

    async def screen_input(self, data: object) -> GuardrailAnswer:
        """Judge what else a person hands in: what comes along with a request, what is said meanwhile."""
        ...

    async def screen_output(self, data: object) -> GuardrailAnswer:
        """Judge what else a model writes: the arguments of a call, the words beside it."""
        ...


class Router(Protocol):
    """Says which agents a request is for (R1.11)."""

    async def route(
        self,
        question: str,
        *,
        agents: Mapping[str, str] | None = None,
        model: Callable[[str], Any] | None = None,
    ) -> Route:
        """Say whom `question` is for. `agents` are those that there are, with what each does; `model` gives a model by
        its name. Raises UsageError: there is no such model."""
        ...


@dataclass(frozen=True, slots=True)
class Recollection:
    """Something remembered that fits a question, with how well it fits (0 to 1)."""

    id: str
    text: str
    score: float


class Remembers(Protocol):
    """A memory as agents and runs hold it (R1.2, R1.93): per session short, per user long."""

    async def recall(self, question: str, *, session: str = "") -> tuple[Recollection, ...]:
        """What is remembered that fits `question`, the best first."""
        ...

    async def remember(self, text: str, *, session: str = "", origin: str = "") -> str:
        """Keep `text`; its id, empty where nothing was kept."""
        ...

    async def search(self, question: str, most: int = 10) -> tuple[Recollection, ...]:
        """What fits `question` best by words and vectors, however little it fits."""
        ...

    async def forget(self, memory_id: str) -> bool:
        """Remove what has this id; whether there was such a thing."""
        ...


@dataclass(frozen=True, slots=True)
class FoundLesson:
    """A lesson of the playbook that fits a question, and how well (0 to 1). `resting`: runs that followed it went wrong too
    often, so that no run is told it."""

    lesson: Lesson
    section: str
    score: float
    resting: bool = False


class Advises(Protocol):
    """The playbooks as runs and tools hold them."""

    async def recall(
        self, question: str, *, personal: bool = True, window: int = 0, working: bool = False
    ) -> tuple[Lesson, ...]:
        """The lessons that a run is told, the best first. `personal`: also those of the person's own playbook. `window`:
        the model's, in tokens; 0 where it is unknown. `working`: the run may change files."""
        ...

    async def search(self, question: str, most: int = 0, *, personal: bool = True) -> tuple[FoundLesson, ...]:
        """What fits `question` best; 0: as many as a run is told at most."""
        ...

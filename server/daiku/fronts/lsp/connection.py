"""One client connection: capabilities, documents, folders, and its App."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from daiku.api import EditorModelsResult, LanguageModelResult, Part
from daiku.domain.base import JsonObject
from daiku.domain.errors import DaikuError, Failure, LLMError
from daiku.fronts.lsp import initialize
from daiku.fronts.lsp.documents.editor import EditorWorkspace
from daiku.fronts.lsp.documents.editor_queries import ClientEditor
from daiku.fronts.lsp.documents.open_documents import Documents
from daiku.fronts.lsp.initialize import Json, Offer, read_offer, to_path
from daiku.fronts.lsp.wire.jsontext import MessageId, write_json
from daiku.fronts.lsp.wire.protocol import Protocol
from daiku.fronts.lsp.wire.refused import RpcError, invalid_params
from daiku.guard.rules.redact import Redactor
from daiku.library.fronts import App, build
from daiku.logs import start_logging
from daiku.run.rules.outside import Workspace
from daiku.settings import home, load, secrets_of
from daiku.settings.trust import is_trusted
from daiku.texts.text import joined, language_of, render, text
from daiku.workspace.disk import DiskWorkspace

log = logging.getLogger(__name__)

_PART: TypeAdapter[Part] = TypeAdapter(Part)
_KINDS = frozenset({"auth", "rate_limit", "timeout", "connection", "overloaded", "bad_request", "not_found",
                    "context_overflow", "stream_cut", "content_filter", "no_provider"})  # fmt: skip


class ClientModels:
    """Language models of the client (`ports.LanguageModelBridge`), over `daiku/languageModel`."""

    def __init__(self, protocol: Protocol) -> None:
        self._protocol = protocol

    async def list_models(self) -> tuple[JsonObject, ...]:
        answer = await self._ask("daiku/languageModel/list", {})
        try:
            result = EditorModelsResult.model_validate(answer)
        except ValidationError:
            raise _malformed() from None
        return tuple(model.model_dump(mode="json", by_alias=True) for model in result.models)

    async def request(
        self,
        model: str,
        messages: Sequence[JsonObject],
        tools: Sequence[JsonObject],
        part: Callable[[JsonObject], None] | None = None,
    ) -> JsonObject:
        params: dict[str, Json] = {"model": model, "messages": list(messages), "tools": list(tools)}

        def on_progress(value: Json) -> None:
            try:
                piece = _PART.validate_python(value)
            except ValidationError:
                return
            if part is not None:
                part(piece.model_dump(mode="json", by_alias=True))

        if part is not None:
            params["partialResultToken"] = self._protocol.next_token
        answer = await self._ask("daiku/languageModel", params, on_progress)
        try:
            return LanguageModelResult.model_validate(answer).model_dump(mode="json", by_alias=True)
        except ValidationError:
            raise _malformed() from None

    async def _ask(self, method: str, params: Json, hear: Callable[[Json], None] | None = None) -> Json:
        try:
            return await self._protocol.ask(method, params, hear)
        except RpcError as error:
            data = error.data if isinstance(error.data, dict) else {}
            kind = data.get("kind")
            raise LLMError(
                Failure.model_validate(
                    {
                        "kind": kind if isinstance(kind, str) and kind in _KINDS else "bad_request",
                        "message": str(data.get("message") or error.message) or text("editor.model_failed"),
                        "hint": str(data.get("hint") or ""),
                        "retryable": kind in ("rate_limit", "timeout", "connection", "overloaded"),
                    }
                )
            ) from None


def _malformed() -> LLMError:
    return LLMError(Failure(kind="format", message=text("editor.model_bad_answer")))


ERROR, WARNING, INFO = 1, 2, 3


class ClientConnection:
    """State of one client. `app()` builds the App on first use, and again after settings changed."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self.protocol = Protocol()
        self.documents = Documents()
        self.offer = Offer()
        self._environ = environ
        self._folders: list[str] = []
        self._settings: Mapping[str, Json] | None = None
        self._app: App | None = None
        self._is_stale = False
        self._building = asyncio.Lock()
        self._workspace: EditorWorkspace | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.cancels: dict[MessageId, Callable[[], object]] = {}
        """Cancel function of each progress bar, by token."""

    # ---- lifecycle

    async def initialize(self, params: Json) -> str:
        """Answer `initialize`. Raises RpcError with every problem."""
        problems = initialize.find_problems(params)
        if problems or not isinstance(params, dict):
            raise invalid_params(problems)
        self.open(read_offer(params))
        return write_json(initialize.initialize_result(self.offer))

    def open(self, offer: Offer) -> None:
        """Apply the client's capabilities, locale, folders, and settings from `initialize`."""
        self.offer = offer
        self.protocol.language = language_of(offer.locale)
        self.documents.encoding = offer.encoding  # type: ignore[assignment]  # one of ENCODINGS
        self._folders = list(offer.folders)
        self._settings = offer.settings if isinstance(offer.settings, dict) else None

    async def initialized(self) -> None:
        """Build the App, and report invalid settings in one line."""
        try:
            await self._fetch_settings()
            await (await self.app()).runs.learner.catch_up()
        except DaikuError as error:
            self.show(ERROR, joined("sentences", [error.failure.message, error.failure.hint]))

    async def close(self) -> None:
        """Close the App; active runs stay resumable."""
        if self._app is not None:
            app, self._app = self._app, None
            await app.aclose()

    # ---- the App

    async def app(self) -> App:
        """Return the App for the current settings. Raises UsageError if they are invalid."""
        async with self._building:
            if self._app is not None and self._is_stale and not self._app.runs.running():
                await self.close()
            if self._app is None:
                self._app = self._build()
                self._is_stale = False
            return self._app

    @property
    def workspace(self) -> EditorWorkspace:
        """The files as the client has them."""
        if self._workspace is None:
            self._workspace = EditorWorkspace(self._disk(), self.documents, self.protocol, self.offer)
        return self._workspace

    @property
    def workspace_key(self) -> str:
        """Key of this workspace's sessions."""
        roots = self.workspace.roots
        return str(roots[0]) if roots else ""

    def _build(self) -> App:
        folder = home(self._environ)
        root = Path(self._folders[0]) if self._folders else None
        loaded = load(
            workspace=root,
            trusted=self._trusts_settings(folder, root),
            environ=self._environ,
            editor=_json_object(self._settings),
        )
        start_logging(folder, Redactor(secrets_of(loaded.config, self._environ)))
        # A client without its own trust dialog gets the command as a hint.
        hint = " (daiku config trust)" if loaded.ignored and self.offer.trusted is None else ""
        for notice in loaded.notices:
            self.show(WARNING, notice, hint)
        app = build(
            loaded.config,
            workspace=self.workspace,
            home=folder,
            editor=ClientEditor(self.protocol, self.documents, self.workspace) if self.offer.editor else None,
            bridge=ClientModels(self.protocol) if self.offer.language_model else None,
            trusted=self.offer.trusted is not False,
            own=self._trusts_settings(folder, root),
            locale=self.offer.locale,
        )
        if notice := app.journal.recovered:
            self.show(WARNING, notice)
        return app

    def _trusts_settings(self, folder: Path, root: Path | None) -> bool:
        """Return True if the settings file of `root` may loosen rules.

        The client's answer decides; without one, the list of trusted folders in Daiku's home.
        """
        if self.offer.trusted is not None:
            return self.offer.trusted
        return root is not None and is_trusted(folder, root)

    def _disk(self) -> Workspace:
        return DiskWorkspace(tuple(Path(folder) for folder in self._folders))

    # ---- settings and folders

    async def _fetch_settings(self) -> None:
        """Request the `daiku` section from a client that sent no settings in `initialize`."""
        if not self.offer.configuration or self._settings is not None:
            return
        try:
            answer = await self.protocol.ask("workspace/configuration", {"items": [{"section": "daiku"}]})
        except RpcError as error:
            log.info("the client gave no configuration: %s", error.message)
            return
        first = answer[0] if isinstance(answer, list) and answer else None
        if isinstance(first, dict) and first:
            self._settings = first

    async def change_settings(self, params: Json) -> None:
        """Handle `workspace/didChangeConfiguration`, with or without the settings themselves."""
        settings = params.get("settings") if isinstance(params, dict) else None
        if isinstance(settings, dict):
            section = settings.get("daiku", settings)
            self._settings = section if isinstance(section, dict) else None
        else:
            self._settings = None
        self._is_stale = True
        await self.initialized()

    def change_folders(self, added: list[str], removed: list[str]) -> None:
        """Handle `workspace/didChangeWorkspaceFolders`."""
        removed_paths = {to_path(uri) for uri in removed}
        remaining = [folder for folder in self._folders if folder not in removed_paths]
        added_paths = [path for uri in added if (path := to_path(uri)) and path not in remaining]
        self._folders = remaining + added_paths
        if self._workspace is not None:
            self._workspace.disk = self._disk()
        self._is_stale = True

    # ---- messages to the user

    def show(self, kind: int, text: str, hint: str = "") -> None:
        """Show one line in a message box; `hint` is appended untranslated."""
        message = " ".join(render(text, self.protocol.language).split()) + hint
        self.protocol.notify("window/showMessage", {"type": kind, "message": message})

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in the background; errors are logged."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish_task)

    def _finish_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", exc_info=error)


_OBJECT: TypeAdapter[JsonObject] = TypeAdapter(JsonObject)


def _json_object(value: Mapping[str, Json] | None) -> JsonObject | None:
    return None if value is None else _OBJECT.validate_python(value)

"""Files and terminals of an ACP client; its unsaved text takes precedence over the disk."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from acp import Client, RequestError
from acp.schema import ClientCapabilities

from daiku.domain.errors import DaikuError
from daiku.domain.work.patches import FileChange, FileStat, Patch
from daiku.edits.rules.changes.diff import stat
from daiku.library.shown import ShownWorkspace, is_plain, stale_error
from daiku.run.rules.outside import TerminalFailed, TextFile, Workspace
from daiku.texts.text import text

log = logging.getLogger(__name__)

KEPT_CHANGES = 50
"""Number of file changes that are remembered."""
LARGEST = 10_000_000
"""Maximum characters of a text read from the client; for larger files the disk is used."""
OUTPUT_BYTES = 5_000_000
"""Maximum bytes of terminal output that the client keeps."""
SIGNALLED = 128
"""Offset of exit codes for processes that a signal ended."""
SECONDS = 20.0
"""Timeout in seconds for a client that reads or writes a file or opens a terminal."""
Failed = (RequestError, ConnectionError, TimeoutError, ValueError)
"""Exceptions of a request that the client rejects, cannot receive, or answers incorrectly."""


class ClientFiles(ShownWorkspace):
    """Workspace of one session (`ports.Workspace`). Paths are restricted by `disk`.

    `folders` are its folders as the client names them, with symbolic links. The protocol cannot delete or
    move files and supports only UTF-8; such changes are made on the disk.
    """

    def __init__(
        self, disk: Workspace, client: Client, offer: ClientCapabilities, folders: Sequence[Path]
    ) -> None:
        super().__init__(disk)
        self.session = ""
        self._named = tuple(zip(disk.roots, folders, strict=True))
        self._client = client
        self._reads = bool(offer.fs and offer.fs.read_text_file)
        self._writes = bool(offer.fs and offer.fs.write_text_file)
        self._one_at_a_time = asyncio.Lock()
        self._written: dict[str, FileChange] = {}

    def place(self, path: str) -> str | None:
        """Return a file's absolute path for the client, or None if it is outside the workspace."""
        try:
            return self._client_path(self.disk.locate(path))
        except (DaikuError, OSError, ValueError):
            return None

    def _client_path(self, place: Path) -> str:
        for real, folder in self._named:
            if place.is_relative_to(real):
                return str(folder / place.relative_to(real))
        return str(place)

    def last_changes(self, paths: Sequence[str]) -> tuple[FileChange, ...]:
        """Return the last changes of these files, with their complete texts."""
        return tuple(self._written[path] for path in paths if path in self._written)

    async def read(self, path: str) -> TextFile:
        """Return the client's text if it has one, else the file's."""
        place = self.locate(path)
        try:
            file = await self.disk.read(path)
        except DaikuError:
            if place.exists() or (unsaved := await self._ask(place)) is None:
                raise
            return TextFile(self.relative(place), unsaved)
        if not is_plain(file) or (client_text := await self._ask(place)) is None:
            return file
        return TextFile(file.path, _with_file_line_ends(client_text, file.text), file.encoding, file.bom)

    async def exists(self, path: str) -> bool:
        return await self.disk.exists(path) or await self._ask(self.locate(path)) is not None

    async def apply(self, patch: Patch, label: str, *, exact: bool = False) -> tuple[FileStat, ...]:
        """Apply a patch through the client where it can write, and on the disk otherwise.

        If the client rejects a file, the complete patch is reverted. Raises StaleVersionError.
        """
        async with self._one_at_a_time:
            via_client = [change for change in patch.files if await self._fits(change)]
            rest = tuple(change for change in patch.files if change not in via_client)
            for change in via_client:
                await self._check(change)
            for change in rest:
                await self._refuse_unsaved(change)
            await self._write(via_client)
            await self._ensure_written(via_client, label)
            if rest:
                try:
                    await self.disk.apply(Patch(files=rest), label, exact=exact)
                except BaseException:
                    await self._take_back(via_client)
                    raise
            for change in patch.files:
                self._written.pop(change.path, None)
                self._written[change.to or change.path] = change
            while len(self._written) > KEPT_CHANGES:
                del self._written[next(iter(self._written))]
            return tuple(stat(change) for change in patch.files)

    # ---- the client's side

    async def _ask(self, place: Path) -> str | None:
        """Return the client's text of a file, or None if it does not provide one."""
        if not self._reads:
            return None
        try:
            async with asyncio.timeout(SECONDS):
                text = (await self._client.read_text_file(self.session, self._client_path(place))).content
        except Failed as error:
            log.info("the client does not read %s: %s", place, error)
            return None
        return text if len(text) <= LARGEST else None

    async def _fits(self, change: FileChange) -> bool:
        if not self._writes or change.new is None or change.kind not in ("create", "edit"):
            return False
        try:
            return change.kind == "create" or is_plain(await self.disk.read(change.path))
        except DaikuError:
            return not self.locate(change.path).exists()  # an unsaved file in the client

    async def _check(self, change: FileChange) -> None:
        """Raise StaleVersionError if the file is not as the change expects it."""
        if change.kind == "create" and change.old is None:
            if await self.exists(change.path):
                raise stale_error(change.path, text("editor.exists"))
        elif (await self.read(change.path)).text != change.old:
            raise stale_error(change.path, text("editor.changed_in_editor"))

    async def _refuse_unsaved(self, change: FileChange) -> None:
        client_text = await self._ask(self.locate(change.path)) if change.old is not None else None
        if client_text is None or not await self.disk.exists(change.path):
            return
        on_disk = await self.disk.read(change.path)
        if is_plain(on_disk) and _with_file_line_ends(client_text, on_disk.text) != on_disk.text:
            raise stale_error(change.path, text("editor.unsaved"))

    async def _write(self, changes: list[FileChange]) -> None:
        for index, change in enumerate(changes):
            try:
                await self._write_text(change.path, change.new or "")
            except BaseException as error:
                await self._take_back(changes[:index])
                if isinstance(error, Failed):
                    raise stale_error(change.path, text("editor.refused", what=str(error))) from None
                raise

    async def _write_text(self, path: str, content: str) -> None:
        async with asyncio.timeout(SECONDS):
            place = self._client_path(self.locate(path))
            await self._client.write_text_file(self.session, place, content)

    async def _ensure_written(self, changes: list[FileChange], label: str) -> None:
        """Write to the disk what the client accepted but neither shows nor saved, so that commands see it."""
        for change in changes:
            old = await self.on_disk(change.path)
            if old == change.old and (await self._ask(self.locate(change.path))) != change.new:
                log.info("the client left %s to us", change.path)
                await self.disk.apply(Patch(files=(change,)), label)

    async def _take_back(self, changes: list[FileChange]) -> None:
        for change in reversed(changes):
            try:
                if change.old is not None:
                    await self._write_text(change.path, change.old)
                else:
                    back = FileChange(path=change.path, kind="delete", old=change.new)
                    await self.disk.apply(Patch(files=(back,)), "")
            except (DaikuError, *Failed) as error:
                log.warning("%s could not be taken back: %s", change.path, error)


def _with_file_line_ends(client_text: str, on_disk: str) -> str:
    """Return the client's text with the line ends of the file.

    Editors normalize line ends, and some drop the last one. If the texts are otherwise equal, the file's
    text is returned.
    """
    if client_text == on_disk:
        return on_disk
    plain = on_disk.replace("\r\n", "\n")
    if client_text in (plain, plain.removesuffix("\n")):
        return on_disk
    only_crlf = "\r\n" in on_disk and on_disk.count("\n") == on_disk.count("\r\n")
    return client_text.replace("\n", "\r\n") if only_crlf and "\r" not in client_text else client_text


class ClientTerminals:
    """Terminals of one session (`ports.Terminals`). `on_create` is called with call id and terminal id."""

    def __init__(self, client: Client) -> None:
        self.session = ""
        self.on_create: Callable[[str, str], None] = _ignore_terminal
        self._client = client

    async def create(self, call_id: str, command: Sequence[str], cwd: Path) -> str:
        try:
            async with asyncio.timeout(SECONDS):
                terminal = await self._client.create_terminal(
                    self.session, command[0], list(command[1:]), cwd=str(cwd), output_byte_limit=OUTPUT_BYTES
                )
        except Failed as error:
            raise TerminalFailed(str(error)) from None
        self.on_create(call_id, terminal.terminal_id)
        return terminal.terminal_id

    async def wait(self, terminal: str) -> int:
        try:
            status = await self._client.wait_for_terminal_exit(self.session, terminal)
        except Failed as error:
            raise TerminalFailed(str(error)) from None
        if status.exit_code is not None:
            return status.exit_code
        return SIGNALLED + _signal_number(status.signal)

    async def output(self, terminal: str) -> str:
        try:
            return (await self._client.terminal_output(self.session, terminal)).output
        except Failed as error:
            raise TerminalFailed(str(error)) from None

    async def kill(self, terminal: str) -> None:
        try:
            await self._client.kill_terminal(self.session, terminal)
        except Failed as error:
            raise TerminalFailed(str(error)) from None

    async def release(self, terminal: str) -> None:
        try:
            await self._client.release_terminal(self.session, terminal)
        except Failed as error:
            raise TerminalFailed(str(error)) from None


def _ignore_terminal(_call: str, _terminal: str) -> None:
    return None


def _signal_number(name: str | None) -> int:
    """Return the number of a signal by name (SIGTERM, TERM, 15); SIGKILL's if it is unknown."""
    signal_name = (name or "").upper()
    if signal_name.isdecimal():
        return int(signal_name)
    numbers = {item.name: item.value for item in signal.Signals}
    return numbers.get(signal_name if signal_name.startswith("SIG") else f"SIG{signal_name}", signal.SIGKILL)

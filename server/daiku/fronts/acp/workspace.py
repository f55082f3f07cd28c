"""Files and terminals of an ACP client: its unsaved text is the truth, and what the client can write it writes."""

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
from daiku.library.shown import ShownWorkspace, is_plain, stale
from daiku.run.rules.outside import TerminalFailed, TextFile, Workspace
from daiku.texts.text import text

log = logging.getLogger(__name__)

KEPT_CHANGES = 50
LARGEST = 10_000_000
"""Characters of a text that is taken from the client; of a larger one the file counts."""
OUTPUT_BYTES = 5_000_000
SIGNALLED = 128
SECONDS = 20.0
"""Timeout of a client that reads or writes a file or opens a terminal."""
Failed = (RequestError, ConnectionError, TimeoutError, ValueError)
"""What a request to the client ends with where it cannot do it, is gone, or answers with something else."""


class ClientFiles(ShownWorkspace):
    """Implements ports.Workspace for one session. Paths are jailed by `disk`, before the client hears of them.

    `named` are its folders as the client names them: links in their paths stay there. The protocol has no way to delete or move a file, and no other encoding than UTF-8: those are done on the disk.
    """

    def __init__(
        self, disk: Workspace, client: Client, offer: ClientCapabilities, named: Sequence[Path]
    ) -> None:
        super().__init__(disk)
        self.session = ""
        self._named = tuple(zip(disk.roots, named, strict=True))
        self._client = client
        self._reads = bool(offer.fs and offer.fs.read_text_file)
        self._writes = bool(offer.fs and offer.fs.write_text_file)
        self._one_at_a_time = asyncio.Lock()
        self._written: dict[str, FileChange] = {}

    def place(self, path: str) -> str | None:
        """The absolute path of a file for the client; None where it is outside."""
        try:
            return self._as_named(self.disk.locate(path))
        except (DaikuError, OSError, ValueError):
            return None

    def _as_named(self, place: Path) -> str:
        for real, named in self._named:
            if place.is_relative_to(real):
                return str(named / place.relative_to(real))
        return str(place)

    def written(self, paths: Sequence[str]) -> tuple[FileChange, ...]:
        """The last changes of these files, with their whole texts."""
        return tuple(self._written[path] for path in paths if path in self._written)

    async def read(self, path: str) -> TextFile:
        """The client's text where it has one, else the file's."""
        place = self.locate(path)
        try:
            file = await self.disk.read(path)
        except DaikuError:
            if place.exists() or (unsaved := await self._ask(place)) is None:
                raise
            return TextFile(self.relative(place), unsaved)
        if not is_plain(file) or (shown := await self._ask(place)) is None:
            return file
        return TextFile(file.path, _as_file(shown, file.text), file.encoding, file.bom)

    async def exists(self, path: str) -> bool:
        return await self.disk.exists(path) or await self._ask(self.locate(path)) is not None

    async def apply(self, patch: Patch, label: str, *, exact: bool = False) -> tuple[FileStat, ...]:
        """What the client can write it writes, the rest is done on the disk. What it refuses takes back the
        whole patch. Raises StaleVersionError."""
        async with self._one_at_a_time:
            through = [change for change in patch.files if await self._fits(change)]
            rest = tuple(change for change in patch.files if change not in through)
            for change in through:
                await self._check(change)
            for change in rest:
                await self._refuse_unsaved(change)
            await self._write(through)
            await self._see_written(through, label)
            if rest:
                try:
                    await self.disk.apply(Patch(files=rest), label, exact=exact)
                except BaseException:
                    await self._take_back(through)
                    raise
            for change in patch.files:
                self._written.pop(change.path, None)
                self._written[change.to or change.path] = change
            while len(self._written) > KEPT_CHANGES:
                del self._written[next(iter(self._written))]
            return tuple(stat(change) for change in patch.files)

    # ---- the client's side

    async def _ask(self, place: Path) -> str | None:
        """The client's text of a file; None where it does not say."""
        if not self._reads:
            return None
        try:
            async with asyncio.timeout(SECONDS):
                text = (await self._client.read_text_file(self.session, self._as_named(place))).content
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
            return not self.locate(change.path).exists()  # an unsaved file of the client's

    async def _check(self, change: FileChange) -> None:
        """Raises StaleVersionError where the file is not as the change was made against it."""
        if change.kind == "create" and change.old is None:
            if await self.exists(change.path):
                raise stale(change.path, text("editor.exists"))
        elif (await self.read(change.path)).text != change.old:
            raise stale(change.path, text("editor.changed_in_editor"))

    async def _refuse_unsaved(self, change: FileChange) -> None:
        shown = await self._ask(self.locate(change.path)) if change.old is not None else None
        if shown is None or not await self.disk.exists(change.path):
            return
        on_disk = await self.disk.read(change.path)
        if is_plain(on_disk) and _as_file(shown, on_disk.text) != on_disk.text:
            raise stale(change.path, text("editor.unsaved"))

    async def _write(self, changes: list[FileChange]) -> None:
        for at, change in enumerate(changes):
            try:
                await self._put(change.path, change.new or "")
            except BaseException as error:
                await self._take_back(changes[:at])
                if isinstance(error, Failed):
                    raise stale(change.path, text("editor.refused", what=str(error))) from None
                raise

    async def _put(self, path: str, content: str) -> None:
        async with asyncio.timeout(SECONDS):
            place = self._as_named(self.locate(path))
            await self._client.write_text_file(self.session, place, content)

    async def _see_written(self, changes: list[FileChange], label: str) -> None:
        """See to it that commands find the edit: what the client took and neither shows nor wrote is written here."""
        for change in changes:
            old = await self.on_disk(change.path)
            if old == change.old and (await self._ask(self.locate(change.path))) != change.new:
                log.info("the client left %s to us", change.path)
                await self.disk.apply(Patch(files=(change,)), label)

    async def _take_back(self, changes: list[FileChange]) -> None:
        for change in reversed(changes):
            try:
                if change.old is not None:
                    await self._put(change.path, change.old)
                else:
                    back = FileChange(path=change.path, kind="delete", old=change.new)
                    await self.disk.apply(Patch(files=(back,)), "")
            except (DaikuError, *Failed) as error:
                log.warning("%s could not be taken back: %s", change.path, error)


def _as_file(shown: str, on_disk: str) -> str:
    """The client's text as the file has it: editors keep line ends for themselves, and some leave out the last one.
    The text of the file where they are the same, else the client's with the file's line ends."""
    if shown == on_disk:
        return on_disk
    plain = on_disk.replace("\r\n", "\n")
    if shown in (plain, plain.removesuffix("\n")):
        return on_disk
    only_crlf = "\r\n" in on_disk and on_disk.count("\n") == on_disk.count("\r\n")
    return shown.replace("\n", "\r\n") if only_crlf and "\r" not in shown else shown


class ClientTerminals:
    """Implements ports.Terminals for one session. `shown` hears of every terminal, with its call."""

    def __init__(self, client: Client) -> None:
        self.session = ""
        self.shown: Callable[[str, str], None] = _not_shown
        self._client = client

    async def create(self, call_id: str, command: Sequence[str], cwd: Path) -> str:
        try:
            async with asyncio.timeout(SECONDS):
                made = await self._client.create_terminal(
                    self.session, command[0], list(command[1:]), cwd=str(cwd), output_byte_limit=OUTPUT_BYTES
                )
        except Failed as error:
            raise TerminalFailed(str(error)) from None
        self.shown(call_id, made.terminal_id)
        return made.terminal_id

    async def wait(self, terminal: str) -> int:
        try:
            ended = await self._client.wait_for_terminal_exit(self.session, terminal)
        except Failed as error:
            raise TerminalFailed(str(error)) from None
        if ended.exit_code is not None:
            return ended.exit_code
        return SIGNALLED + _number(ended.signal)

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


def _not_shown(_call: str, _terminal: str) -> None:
    return None


def _number(name: str | None) -> int:
    """The number of a signal by its name (SIGTERM, TERM, 15); SIGKILL's where it is not known."""
    told = (name or "").upper()
    if told.isdecimal():
        return int(told)
    known = {each.name: each.value for each in signal.Signals}
    return known.get(told if told.startswith("SIG") else f"SIG{told}", signal.SIGKILL)

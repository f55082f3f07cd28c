"""A folder of Markdown files as a source of items, to try work items without a forge; its branches stay local."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_never

from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError
from daiku.domain.items.forge import ForgeRefusal, FoundItem, ItemNews, ItemText, Said
from daiku.domain.items.intents import (
    ForgeIntent,
    MarkReady,
    OpenRequest,
    Outcome,
    PostComment,
    SetState,
    ShowProgress,
)
from daiku.domain.items.item import ItemKey, SourceName
from daiku.items.answers import refused
from daiku.items.files.itemfile import ItemFile, read_item_file
from daiku.items.labels import our_labels
from daiku.items.rules.marks import mark_of
from daiku.items.source import Check, CloneAccess, Strip, nothing_hidden, unchecked
from daiku.settings.config import WorkLabels
from daiku.texts.rules.frontmatter import BadLine
from daiku.texts.text import text
from daiku.workspace.diskio import read_bytes, replace_file

logger = logging.getLogger(__name__)
MAX_BODY = 200_000
"""Characters of the longest text that is worked."""
MAX_FILE = 2_000_000
"""Bytes of the largest file: with what was said about it."""
_TRIES = 5
_NAME = re.compile(
    r"(?!\.)(?!.*[<>:\\/\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff])\S(?:.{0,198}\S)?"
)
"""What can be the name of an item: it stands in marks and commands."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A file as it was read: `stamp` differs when it is another, `time` is when it was changed."""

    file: ItemFile
    stamp: tuple[int, ...]
    time: str


class FolderSource:
    """The files of `folder` whose front matter has our label; `repository` is where they are worked, `language` that of
    what is written into them. Nothing is read through a symlink."""

    def __init__(
        self,
        folder: Path,
        repository: Path,
        labels: WorkLabels,
        strip: Strip = nothing_hidden,
        language: str = "en",
    ) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._repository = repository
        self._place = f"{self._folder}, {os.path.realpath(repository)}"
        self._labels = labels
        self._strip = strip
        self._language = language
        self._seen: dict[str, tuple[tuple[int, ...], FoundItem | None]] = {}

    @property
    def name(self) -> SourceName:
        return "files"

    def takes(self, key: ItemKey) -> bool:
        return key.source == self.name and key.place == self._place

    async def find(self) -> tuple[FoundItem, ...] | ForgeRefusal:
        return await asyncio.to_thread(self._find)

    async def read(self, key: ItemKey) -> ItemText | ForgeRefusal:
        return await asyncio.to_thread(self._item, key)

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:
        found = await asyncio.to_thread(self._read, key.name)
        if isinstance(found, ForgeRefusal):
            return _no_longer(found) if found.kind == "gone" else found
        if not found.file.has_label(our_labels(self._labels)):
            return ItemNews(wanted=False, why=text("folder.no_label", name=key.name))
        if found.file.state == "stopped":
            return ItemNews(wanted=False, why=text("folder.stopped", name=key.name))
        return ItemNews(wanted=True, said=tuple(said for said in _said(found) if _later(said.time, after)))

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = unchecked
    ) -> Outcome | ForgeRefusal:
        check()
        match intent:
            case SetState():
                return await self._change(key, lambda file: file.in_state(intent.state, self._labels))
            case PostComment():
                mark = mark_of(str(key), operation)
                return await self._change(
                    key,
                    lambda file: (
                        file
                        if file.has_comment(mark)
                        else file.with_comment(mark, intent.text, self._language)
                    ),
                )
            case ShowProgress():
                return await self._change(key, lambda file: file.with_progress(intent.text, self._language))
            case OpenRequest() | MarkReady():
                return Outcome()  # the branch stays where it is
            case _:
                assert_never(intent)

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess | ForgeRefusal:
        return CloneAccess(url=str(self._repository), local=True)

    async def aclose(self) -> None:
        self._seen.clear()

    def _find(self) -> tuple[FoundItem, ...] | ForgeRefusal:
        try:
            entries = sorted(_markdown_files(self._folder))
        except OSError as error:
            return refused("gone", text("folder.no_folder", folder=str(self._folder), why=_why(error)))
        self._seen = {name: seen for name, seen in self._seen.items() if name in dict(entries)}
        for name, stamp in entries:
            if self._seen.get(name, ((), None))[0] != stamp:
                self._seen[name] = (stamp, self._candidate(name))
        found = [item for _, item in self._seen.values() if item is not None]
        return tuple(sorted(found, key=lambda item: (item.labelled_at, item.key.name)))

    def _candidate(self, name: str) -> FoundItem | None:
        """The item that a file is; what cannot be read as one is told once."""
        if _NAME.fullmatch(name) is None:
            logger.warning("%s", text("folder.bad_name", name=name.encode("utf-8", "replace").decode()))
            return None
        found = self._read(name)
        if isinstance(found, ForgeRefusal):
            if found.kind != "gone" and found.message.id != "folder.no_front_matter":
                logger.warning("%s", found.message)
            return None
        file = found.file
        if not file.has_label((self._labels.todo,)) or file.state not in ("", "queued"):
            return None
        # The moment of the change stands for that of the label: after it is over, only another change orders it again.
        url = (self._folder / f"{name}.md").as_uri()
        return FoundItem(key=self._key(name), title=file.title or name, url=url, labelled_at=found.time)

    def _key(self, name: str) -> ItemKey:
        return ItemKey(source="files", kind="file", name=name, place=self._place)

    def _item(self, key: ItemKey) -> ItemText | ForgeRefusal:
        found = self._read(key.name)
        if isinstance(found, ForgeRefusal):
            return found
        body, hidden = self._strip(found.file.body)
        if len(body) > MAX_BODY:
            return refused("too_large", text("folder.long", name=key.name, most=MAX_BODY))
        if not body.strip():
            return refused("empty", text("folder.empty", name=key.name))
        return ItemText(
            key=key,
            title=found.file.title or key.name,
            body=body,
            author="",
            url=(self._folder / f"{key.name}.md").as_uri(),
            body_trusted=True,
            comments=_said(found),
            hidden=hidden,
            clone_url=str(self._repository),
            claimed_at=found.time,
        )

    async def _change(self, key: ItemKey, change: Callable[[ItemFile], ItemFile]) -> Outcome | ForgeRefusal:
        return await asyncio.to_thread(self._changed, key, change)

    def _changed(self, key: ItemKey, change: Callable[[ItemFile], ItemFile]) -> Outcome | ForgeRefusal:
        """Write what `change` makes of the file, at once; looked at again where somebody wrote it meanwhile."""
        path = self._folder / f"{key.name}.md"
        for _ in range(_TRIES):
            found = self._read(key.name)
            if isinstance(found, ForgeRefusal):
                return found
            changed = change(found.file)
            if changed.text == found.file.text:
                return Outcome(reference=path.as_uri(), found=True)
            # What the person wrote before this change of ours is no newer for it.
            data = changed.noting(found.time).text.encode()
            try:
                if _stamp(path.lstat()) != found.stamp:
                    continue
                replace_file((self._folder,), path, data, path.name)
            except FileNotFoundError:
                continue
            except (OSError, DaikuError) as error:
                return refused("forbidden", text("folder.not_written", name=key.name, why=_why(error)))
            return Outcome(reference=path.as_uri())
        return refused("unreachable", text("folder.busy", name=key.name))

    def _read(self, name: str) -> _Found | ForgeRefusal:
        path = self._folder / f"{name}.md"
        if _NAME.fullmatch(name) is None:
            return refused("bad", text("folder.bad_name", name=name))
        try:
            before = path.lstat()
            if before.st_size > MAX_FILE:
                return refused("too_large", text("folder.too_large", name=name, most=MAX_FILE))
            data = read_bytes((self._folder,), path, path.name, MAX_FILE)
        except FileNotFoundError:
            return refused("gone", text("folder.gone", name=name))
        except (OSError, DaikuError) as error:
            gone = not os.path.lexists(path)
            why = (
                text("folder.gone", name=name)
                if gone
                else text("folder.not_read", name=name, why=_why(error))
            )
            return refused("gone" if gone else "bad", why)
        try:
            read = read_item_file(data.decode("utf-8")) if b"\0" not in data else None
        except UnicodeDecodeError:
            return refused("bad", text("folder.not_utf8", name=name))
        if read is None:
            return refused("bad", text("folder.no_front_matter", name=name))
        if isinstance(read, BadLine):
            return refused("bad", text("folder.bad_line", name=name, line=read.line))
        return _Found(read, _stamp(before), _time(before))


def _markdown_files(folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names of the regular files that may be items, each with what changes when it does."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.endswith(".md") or entry.name.startswith("."):
                continue
            if entry.is_file(follow_symlinks=False):
                yield entry.name.removesuffix(".md"), _stamp(entry.stat(follow_symlinks=False))


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return stat.S_IFMT(found.st_mode), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _time(found: os.stat_result) -> str:
    return datetime.fromtimestamp(found.st_mtime, UTC).isoformat(timespec="microseconds")


def _later(time: str, after: str) -> bool:
    return not after or datetime.fromisoformat(time) > datetime.fromisoformat(after)


def _said(found: _Found) -> tuple[Said, ...]:
    """What the person wrote below the body: the folder is their own, so they are believed."""
    return tuple(
        Said(id=words.id, author="", text=words.text, time=words.time or found.time, trusted=True)
        for words in found.file.words()
    )


def _no_longer(refusal: ForgeRefusal) -> ItemNews:
    return ItemNews(wanted=False, why=refusal.message)


def _why(error: Exception) -> str:
    if isinstance(error, DaikuError):
        return error.failure.message
    return (error.strerror if isinstance(error, OSError) else "") or type(error).__name__

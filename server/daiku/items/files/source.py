"""A folder of Markdown files as a source of items, to try work items without a forge. Branches stay local."""

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
from daiku.domain.items.item import (
    ForgeIntent,
    ItemKey,
    MarkReady,
    OpenRequest,
    Outcome,
    PostComment,
    SetState,
    ShowProgress,
    SourceName,
)
from daiku.items.files.itemfile import ItemFile, read_item_file
from daiku.items.labels import list_own_labels
from daiku.items.rules.harmless import build_mark
from daiku.items.source import Check, CloneAccess, Strip, build_refusal, no_check, strip_nothing
from daiku.settings.config import WorkLabels
from daiku.texts.rules.frontmatter import BadLine
from daiku.texts.text import text
from daiku.workspace.diskio import read_bytes, replace_file

logger = logging.getLogger(__name__)
MAX_BODY = 200_000
"""Maximum characters of an item's text."""
MAX_FILE = 2_000_000
"""Maximum bytes of a file, with its comments."""
_TRIES = 5
_NAME = re.compile(
    r"(?!\.)(?!.*[<>:\\/\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff])\S(?:.{0,198}\S)?"
)
"""Pattern of an item's name, which is used in marks and commands."""


@dataclass(frozen=True, slots=True)
class _FileState:
    """A file as read: `stamp` changes with the file, `time` is its mtime."""

    file: ItemFile
    stamp: tuple[int, ...]
    time: str


class FolderSource:
    """The files of `folder` whose front matter has Daiku's label.

    They are processed in `repository`; `language` is that of the comments. Symlinks are not read.
    """

    def __init__(
        self,
        folder: Path,
        repository: Path,
        labels: WorkLabels,
        strip: Strip = strip_nothing,
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
        return await asyncio.to_thread(self._read_item, key)

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:
        state = await asyncio.to_thread(self._read, key.name)
        if isinstance(state, ForgeRefusal):
            return _as_unwanted(state) if state.kind == "gone" else state
        if not state.file.has_label(list_own_labels(self._labels)):
            return ItemNews(wanted=False, why=text("folder.no_label", name=key.name))
        if state.file.state == "stopped":
            return ItemNews(wanted=False, why=text("folder.stopped", name=key.name))
        return ItemNews(
            wanted=True,
            said=tuple(comment for comment in _read_comments(state) if _is_later(comment.time, after)),
        )

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = no_check
    ) -> Outcome | ForgeRefusal:
        check()
        match intent:
            case SetState():
                return await self._change(key, lambda file: file.with_state(intent.state, self._labels))
            case PostComment():
                mark = build_mark(str(key), operation)
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
            entries = sorted(_list_markdown_files(self._folder))
        except OSError as error:
            return build_refusal(
                "gone", text("folder.no_folder", folder=str(self._folder), why=_explain(error))
            )
        self._seen = {name: cached for name, cached in self._seen.items() if name in dict(entries)}
        for name, stamp in entries:
            if self._seen.get(name, ((), None))[0] != stamp:
                self._seen[name] = (stamp, self._read_candidate(name))
        items = [item for _, item in self._seen.values() if item is not None]
        return tuple(sorted(items, key=lambda item: (item.labelled_at, item.key.name)))

    def _read_candidate(self, name: str) -> FoundItem | None:
        """Return the item in a file; None if there is none. An unreadable file is logged once."""
        if _NAME.fullmatch(name) is None:
            logger.warning("%s", text("folder.bad_name", name=name.encode("utf-8", "replace").decode()))
            return None
        state = self._read(name)
        if isinstance(state, ForgeRefusal):
            if state.kind != "gone" and state.message.id != "folder.no_front_matter":
                logger.warning("%s", state.message)
            return None
        file = state.file
        if not file.has_label((self._labels.todo,)) or file.state not in ("", "queued"):
            return None
        # The file's mtime counts as the label's time: once done, only another change orders the item again.
        url = (self._folder / f"{name}.md").as_uri()
        return FoundItem(key=self._build_key(name), title=file.title or name, url=url, labelled_at=state.time)

    def _build_key(self, name: str) -> ItemKey:
        return ItemKey(source="files", kind="file", name=name, place=self._place)

    def _read_item(self, key: ItemKey) -> ItemText | ForgeRefusal:
        state = self._read(key.name)
        if isinstance(state, ForgeRefusal):
            return state
        body, hidden = self._strip(state.file.body)
        if len(body) > MAX_BODY:
            return build_refusal("too_large", text("folder.long", name=key.name, most=MAX_BODY))
        if not body.strip():
            return build_refusal("empty", text("folder.empty", name=key.name))
        return ItemText(
            key=key,
            title=state.file.title or key.name,
            body=body,
            author="",
            url=(self._folder / f"{key.name}.md").as_uri(),
            body_trusted=True,
            comments=_read_comments(state),
            hidden=hidden,
            clone_url=str(self._repository),
            claimed_at=state.time,
        )

    async def _change(self, key: ItemKey, change: Callable[[ItemFile], ItemFile]) -> Outcome | ForgeRefusal:
        return await asyncio.to_thread(self._change_now, key, change)

    def _change_now(self, key: ItemKey, change: Callable[[ItemFile], ItemFile]) -> Outcome | ForgeRefusal:
        """Write the file as `change` returns it, atomically; retry if it was written meanwhile."""
        path = self._folder / f"{key.name}.md"
        for _ in range(_TRIES):
            state = self._read(key.name)
            if isinstance(state, ForgeRefusal):
                return state
            changed = change(state.file)
            if changed.text == state.file.text:
                return Outcome(reference=path.as_uri(), found=True)
            # Daiku's change must not make the user's earlier paragraphs newer.
            data = changed.with_times(state.time).text.encode()
            try:
                if _compute_stamp(path.lstat()) != state.stamp:
                    continue
                replace_file((self._folder,), path, data, path.name)
            except FileNotFoundError:
                continue
            except (OSError, DaikuError) as error:
                return build_refusal(
                    "forbidden", text("folder.not_written", name=key.name, why=_explain(error))
                )
            return Outcome(reference=path.as_uri())
        return build_refusal("unreachable", text("folder.busy", name=key.name))

    def _read(self, name: str) -> _FileState | ForgeRefusal:
        path = self._folder / f"{name}.md"
        if _NAME.fullmatch(name) is None:
            return build_refusal("bad", text("folder.bad_name", name=name))
        try:
            before = path.lstat()
            if before.st_size > MAX_FILE:
                return build_refusal("too_large", text("folder.too_large", name=name, most=MAX_FILE))
            data = read_bytes((self._folder,), path, path.name, MAX_FILE)
        except FileNotFoundError:
            return build_refusal("gone", text("folder.gone", name=name))
        except (OSError, DaikuError) as error:
            gone = not os.path.lexists(path)
            why = (
                text("folder.gone", name=name)
                if gone
                else text("folder.not_read", name=name, why=_explain(error))
            )
            return build_refusal("gone" if gone else "bad", why)
        try:
            item_file = read_item_file(data.decode("utf-8")) if b"\0" not in data else None
        except UnicodeDecodeError:
            return build_refusal("bad", text("folder.not_utf8", name=name))
        if item_file is None:
            return build_refusal("bad", text("folder.no_front_matter", name=name))
        if isinstance(item_file, BadLine):
            return build_refusal("bad", text("folder.bad_line", name=name, line=item_file.line))
        return _FileState(item_file, _compute_stamp(before), _format_mtime(before))


def _list_markdown_files(folder: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names of the regular files that may be items, each with its stamp."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.name.endswith(".md") or entry.name.startswith("."):
                continue
            if entry.is_file(follow_symlinks=False):
                yield entry.name.removesuffix(".md"), _compute_stamp(entry.stat(follow_symlinks=False))


def _compute_stamp(status: os.stat_result) -> tuple[int, ...]:
    return stat.S_IFMT(status.st_mode), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _format_mtime(status: os.stat_result) -> str:
    return datetime.fromtimestamp(status.st_mtime, UTC).isoformat(timespec="microseconds")


def _is_later(time: str, after: str) -> bool:
    return not after or datetime.fromisoformat(time) > datetime.fromisoformat(after)


def _read_comments(state: _FileState) -> tuple[Said, ...]:
    """Return the user's paragraphs as trusted comments: the folder is the user's own."""
    return tuple(
        Said(id=p.id, author="", text=p.text, time=p.time or state.time, trusted=True)
        for p in state.file.read_paragraphs()
    )


def _as_unwanted(refusal: ForgeRefusal) -> ItemNews:
    return ItemNews(wanted=False, why=refusal.message)


def _explain(error: Exception) -> str:
    if isinstance(error, DaikuError):
        return error.failure.message
    return (error.strerror if isinstance(error, OSError) else "") or type(error).__name__

"""A repository's first commit, read from its files: no git runs, and none of the repository's settings counts."""

from __future__ import annotations

import mmap
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

MOST_COMMITS = 100_000
"""So many are looked back; what is older is not found."""
_MOST_LINKS = 5
_MOST_ALTERNATES = 20
_LARGEST_COMMIT = 1_000_000
_PIECE = 1_024
_LARGEST_LIST = 20_000_000
_MOST_DELTAS = 64
_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = re.compile(r"refs/[^\x00-\x20]{1,200}|HEAD")
_TIPS = ("refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master", "HEAD")
"""Where the history that all copies share is looked for."""
_PARENT = re.compile(rb"^parent ([0-9a-f]+)$", re.MULTILINE)
_COMMIT, _BY_OFFSET, _BY_ID = 1, 6, 7
_INDEX = b"\xfftOc\x00\x00\x00\x02"
_FAN_OUT = 8 + 256 * 4


class UnreadableError(Exception):
    """An object is missing, damaged, or of a form that is not known here."""


def first_commit(common: Path, folder: Path) -> str:
    """The id of the commit that a repository began with, following first parents; empty where there is none yet, or
    where the repository holds only the end of its history. `folder`: a work tree's own git folder, which is looked at
    where the repository has no branch of a usual name. Raises UnreadableError."""
    if (common / "shallow").exists():
        return ""
    tips = (*(_meant(common, f"ref: {name}") for name in _TIPS), _meant(common, _line(folder / "HEAD")))
    commit = next(filter(None, tips), "")
    seen = set[str]()  # what is damaged may lead in a circle
    with Objects(common) as objects:
        while commit and commit not in seen and len(seen) < MOST_COMMITS:
            seen.add(commit)
            parent = _PARENT.search(objects.commit(commit).partition(b"\n\n")[0])
            if parent is None:
                return commit
            commit = parent[1].decode()
    if commit:
        raise UnreadableError
    return ""


def holds(common: Path, commit: str) -> bool:
    """Whether the repository has this object."""
    with suppress(UnreadableError, OSError, ValueError), Objects(common) as objects:
        return objects.has(commit)
    return False


def _meant(common: Path, said: str) -> str:
    """The commit that a ref or HEAD stands for, by what is written there; empty where there is none."""
    for _ in range(_MOST_LINKS):
        if _ID.fullmatch(said):
            return said
        name = said.removeprefix("ref:").strip()
        if not said.startswith("ref:") or not _REF.fullmatch(name) or ".." in name:
            return ""
        said = _line(common / name) or _packed(common, name)
    return ""


def _packed(common: Path, name: str) -> str:
    for line in _text(common / "packed-refs", _LARGEST_LIST).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _line(file: Path) -> str:
    return _text(file, 1_000).partition("\n")[0].strip()


def _text(file: Path, most: int) -> str:
    """The beginning of a file; empty where it is none."""
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as opened:
            return opened.read(most).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


class Objects:
    """The commits of a repository: loose, in packs, and in what it borrows from."""

    def __init__(self, common: Path) -> None:
        self._folders = tuple(_folders(common / "objects"))
        self._packs: list[_Pack] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pack in self._packs or ():
            pack.close()

    def has(self, commit: str) -> bool:
        if not _ID.fullmatch(commit):
            return False
        return any((folder / commit[:2] / commit[2:]).is_file() for folder in self._folders) or any(
            pack.offset(bytes.fromhex(commit)) is not None for pack in self._opened()
        )

    def commit(self, commit: str) -> bytes:
        """The text of a commit. Raises UnreadableError."""
        try:
            kind, text = self._of_packs(commit) or self._loose(commit)
        except (OSError, ValueError, zlib.error, struct.error, IndexError) as wrong:
            raise UnreadableError from wrong
        if kind != _COMMIT:
            raise UnreadableError
        return text

    def _of_packs(self, commit: str) -> tuple[int, bytes] | None:
        wanted = bytes.fromhex(commit)
        for pack in self._opened():
            offset = pack.offset(wanted)
            if offset is not None:
                return pack.read(offset, len(wanted))
        return None

    def _loose(self, commit: str) -> tuple[int, bytes]:
        for folder in self._folders:
            file = folder / commit[:2] / commit[2:]
            if file.is_file():
                with file.open("rb") as opened:
                    text = _inflated(opened.read(_LARGEST_COMMIT), 0)
                kind, _, body = text.partition(b"\0")
                return (_COMMIT if kind.startswith(b"commit ") else 0), body
        raise UnreadableError

    def _opened(self) -> list[_Pack]:
        if self._packs is None:
            self._packs = []
            for folder in self._folders:
                for index in sorted((folder / "pack").glob("*.idx")):
                    with suppress(OSError, ValueError):
                        self._packs.append(_Pack(index))
        return self._packs


class _Pack:
    """One pack and its index, of version 2."""

    def __init__(self, index: Path) -> None:
        self._file = index.with_suffix(".pack")
        self._index = _mapped(index)
        self._pack: mmap.mmap | None = None
        if self._index[:8] != _INDEX:
            self._index.close()
            raise ValueError(index)
        self._count = self._number(_FAN_OUT - 4)

    def close(self) -> None:
        self._index.close()
        if self._pack is not None:
            self._pack.close()

    def offset(self, wanted: bytes) -> int | None:
        """Where an object stands in the pack; None where it is not in it."""
        width = len(wanted)
        low = self._number(4 + wanted[0] * 4) if wanted[0] else 0
        high = self._number(8 + wanted[0] * 4)
        while low < high:
            middle = (low + high) // 2
            at = _FAN_OUT + middle * width
            found = self._index[at : at + width]
            if found == wanted:
                return self._place(middle, width)
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return None

    def read(self, offset: int, width: int, deltas: int = _MOST_DELTAS) -> tuple[int, bytes]:
        """The kind and the bytes of an object; ids have `width` bytes. Raises UnreadableError and what comes of damage."""
        if not deltas:
            raise UnreadableError
        if self._pack is None:
            self._pack = _mapped(self._file)
        pack, at = self._pack, offset
        byte = pack[at]
        kind = byte >> 4 & 7
        while byte & 0x80:
            at += 1
            byte = pack[at]
        at += 1
        if kind == _BY_OFFSET:
            back, at = _distance(pack, at)
            kind, whole = self.read(offset - back, width, deltas - 1)
        elif kind == _BY_ID:
            place = self.offset(pack[at : at + width])
            if place is None:
                raise UnreadableError
            kind, whole = self.read(place, width, deltas - 1)
            at += width
        else:
            return kind, _inflated(pack, at)
        return kind, _patched(whole, _inflated(pack, at))

    def _place(self, number: int, width: int) -> int:
        small = _FAN_OUT + self._count * (width + 4)
        place = self._number(small + number * 4)
        if not place & 0x8000_0000:
            return place
        large = small + self._count * 4 + (place & 0x7FFF_FFFF) * 8
        return int(struct.unpack(">Q", self._index[large : large + 8])[0])

    def _number(self, at: int) -> int:
        return int(struct.unpack(">I", self._index[at : at + 4])[0])


def _mapped(file: Path) -> mmap.mmap:
    with file.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)


def _folders(objects: Path) -> Iterator[Path]:
    """The folder of objects and those that it borrows from."""
    pending, seen = [objects], set[Path]()
    while pending and len(seen) < _MOST_ALTERNATES:
        here = pending.pop()
        if here in seen:
            continue
        seen.add(here)
        yield here
        lines = _text(here / "info" / "alternates", _LARGEST_COMMIT).splitlines()
        pending += [here / line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _inflated(packed: bytes | mmap.mmap, at: int) -> bytes:
    """What is compressed there, up to its own end, which stands nowhere else."""
    unpacking, parts, room = zlib.decompressobj(), list[bytes](), _LARGEST_COMMIT
    while not unpacking.eof and room > 0 and at < len(packed):
        parts.append(unpacking.decompress(packed[at : at + _PIECE], room))
        at += _PIECE
        room -= len(parts[-1])
    return b"".join(parts)


def _distance(pack: mmap.mmap, at: int) -> tuple[int, int]:
    byte = pack[at]
    back = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = pack[at]
        back = (back + 1) << 7 | byte & 0x7F
    if not back:
        raise UnreadableError
    return back, at + 1


def _patched(whole: bytes, delta: bytes) -> bytes:
    """`whole` changed by git's delta: parts of it that are copied, and new bytes."""
    at = 0
    for _ in range(2):  # the sizes before and after
        while delta[at] & 0x80:
            at += 1
        at += 1
    parts: list[bytes] = []
    length = 0
    while at < len(delta):
        order = delta[at]
        at += 1
        if order & 0x80:
            numbers = [0] * 7
            for bit in range(7):
                if order >> bit & 1:
                    numbers[bit] = delta[at]
                    at += 1
            start = int.from_bytes(bytes(numbers[:4]), "little")
            size = int.from_bytes(bytes(numbers[4:]), "little") or 0x10000
            parts.append(whole[start : start + size])
        else:
            parts.append(delta[at : at + order])
            at += order
        length += len(parts[-1])
        if length > _LARGEST_COMMIT or not order:
            raise UnreadableError
    return b"".join(parts)

"""Reads and replaces files through descriptors that are checked after they are opened."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from daiku.texts.text import Text, text
from daiku.workspace.paths import find_root, refuse

READ_LIMIT = 10_000_000
"""Bytes of the largest file that is read as text."""

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd


def read_bytes(roots: tuple[Path, ...], real: Path, name: str, limit: int = READ_LIMIT) -> bytes:
    """Return the bytes of the regular file `real`. Raises ToolValidationError with the reason otherwise."""
    try:
        fd = os.open(real, os.O_RDONLY | _NOFOLLOW | _NONBLOCK | _BINARY | _CLOEXEC)
    except OSError as error:
        raise refuse(text("files.because", path=name, why=_explain_error(real, error))) from None
    try:
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            raise refuse(text("files.is_folder", path=name), text("files.list_shows"))
        if not stat.S_ISREG(status.st_mode):
            raise refuse(text("files.irregular_device", path=name))
        if status.st_size > limit:
            raise refuse(
                text("files.too_large", path=name, count=f"{status.st_size:,}", most=f"{limit:,}"),
                text("files.search_large"),
            )
        _check_place(fd, roots, real, name)
        parts: list[bytes] = []
        size = 0
        while chunk := os.read(fd, 1 << 20):
            parts.append(chunk)
            size += len(chunk)
            if size > limit:
                raise refuse(text("files.grew", path=name, most=f"{limit:,}"))
        return b"".join(parts)
    finally:
        os.close(fd)


def _explain_error(real: Path, error: OSError) -> Text:
    if isinstance(error, FileNotFoundError):
        return text("files.none_such")
    if isinstance(error, PermissionError):
        return text("files.not_permitted")
    if real.is_symlink():
        return text("files.link_circle")
    if isinstance(error, NotADirectoryError):
        return text("files.part_is_file")
    return text("files.cannot_open", what=error.strerror or "")


def _check_place(fd: int, roots: tuple[Path, ...], real: Path, name: str) -> None:
    """Refuse an open file outside the roots: a link may have been inserted since the path was resolved."""
    link = f"/proc/self/fd/{fd}"
    try:
        place = Path(link).readlink()
    except OSError:
        opened, current = os.fstat(fd), os.stat(os.path.realpath(real))  # noqa: PTH116  # of the same path
        same = (opened.st_dev, opened.st_ino) == (current.st_dev, current.st_ino)
        place = Path(os.path.realpath(real)) if same else Path(os.devnull)
    if place.name.endswith(" (deleted)") and not place.exists():
        raise refuse(text("files.replaced", path=name), text("files.try_again"))
    if find_root(roots, place) is None:
        raise refuse(text("files.leads_out", path=name))


@contextmanager
def _open_folder(roots: tuple[Path, ...], folder: Path, name: str) -> Generator[int | None]:
    """Open a descriptor of `folder`, checked to be inside; yield None where unsupported."""
    if not _BY_DESCRIPTOR:
        if find_root(roots, Path(os.path.realpath(folder))) is None:
            raise refuse(text("files.leads_out", path=name))
        yield None
        return
    try:
        fd = os.open(folder, os.O_RDONLY | _DIRECTORY | _NOFOLLOW | _CLOEXEC)
    except OSError as error:
        raise refuse(text("files.folder_closed", path=name, what=error.strerror or "")) from None
    try:
        _check_place(fd, roots, folder, name)
        yield fd
    finally:
        os.close(fd)


def make_folders(roots: tuple[Path, ...], folder: Path, name: str) -> list[Path]:
    """Create `folder` and its parents. Return the created folders, outermost first."""
    missing: list[Path] = []
    at = folder
    while not at.exists() and not at.is_symlink():
        missing.append(at)
        at = at.parent
    if find_root(roots, Path(os.path.realpath(at))) is None or not at.is_dir():
        raise refuse(text("files.folder_outside", path=name, folder=at.name))
    created: list[Path] = []
    for path in reversed(missing):
        with _open_folder(roots, path.parent, name) as fd:
            os.mkdir(path if fd is None else path.name, dir_fd=fd)  # pathlib takes no descriptor
        created.append(path)
    return created


def replace_file(roots: tuple[Path, ...], real: Path, data: bytes, name: str) -> None:
    """Replace the file `real` by one with `data`, atomically.

    The old inode is never written, so hard links to it keep their content. The mode and, where permitted, the
    owner are preserved.
    """
    try:
        before: os.stat_result | None = real.lstat()
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before.st_mode):
        raise refuse(text("files.irregular", path=name))
    if before is not None and not before.st_mode & stat.S_IWUSR:
        raise refuse(text("files.read_only", path=name))
    temporary = f".{real.name[:80]}.{secrets.token_hex(6)}.tmp"
    with _open_folder(roots, real.parent, name) as fd:

        def place(entry: str) -> str | Path:
            return entry if fd is not None else real.parent / entry

        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _BINARY | _CLOEXEC
        out = os.open(place(temporary), flags, 0o666 if before is None else 0o600, dir_fd=fd)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(out, view) :]
                if before is not None:
                    with suppress(OSError):
                        os.fchown(out, before.st_uid, before.st_gid)
                    os.fchmod(out, stat.S_IMODE(before.st_mode))
                os.fsync(out)
            finally:
                os.close(out)
            os.replace(place(temporary), place(real.name), src_dir_fd=fd, dst_dir_fd=fd)  # descriptors
        except BaseException:
            with suppress(OSError):
                os.unlink(place(temporary), dir_fd=fd)  # descriptors
            raise


def remove_file(roots: tuple[Path, ...], real: Path, name: str) -> None:
    """Remove the entry `real` from its folder. Other hard links and a link's target remain."""
    with _open_folder(roots, real.parent, name) as fd:
        os.unlink(real if fd is None else real.name, dir_fd=fd)  # descriptors


def move_file(roots: tuple[Path, ...], real: Path, to: Path, name: str) -> None:
    """Rename `real` inside the workspace; refuse an existing `to`."""
    if to.exists() and not os.path.samefile(real, to):  # noqa: PTH121  # two Paths
        raise refuse(text("files.place_taken", path=name))
    with _open_folder(roots, real.parent, name) as source, _open_folder(roots, to.parent, name) as target:
        os.rename(  # descriptors
            real if source is None else real.name,
            to if target is None else to.name,
            src_dir_fd=source,
            dst_dir_fd=target,
        )

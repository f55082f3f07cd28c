"""The file system that a sandboxed command sees: as options for bubblewrap, later ones over earlier ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.guard.sandbox.gitfolder import secret_attributes
from daiku.guard.sandbox.places import (
    DOWNLOAD_CACHES,
    USER_INSTALLS,
    daiku_places,
    host_places,
    is_within,
    list_places,
    listening_sockets,
    program_places,
    relative_sockets,
)
from daiku.workspace.programs import build_safe_path


@dataclass(frozen=True, slots=True)
class Bounds:
    """Permissions of a sandboxed command.

    `writable` folders; `network`; `read_only`: nothing is written at all, and nothing is seen but `roots`, `readable`
    and the system's programs. `readable` are folders outside the roots (a repository's), `kept` places that stay as
    they are, `masked` files that are not shown. `sockets` lie in the roots; those that another process answers at are
    covered. `attributes`: the `info` folder of the repository, where files of secrets become binary for git.
    `session`: whose commands reach one another on 127.0.0.1. `closed`: what .daikuignore closes, which no command
    reads. `linked`: hard links to files outside, which no command writes.
    """

    roots: tuple[Path, ...]
    writable: tuple[Path, ...] = ()
    network: bool = False
    read_only: bool = False
    readable: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    masked: tuple[Path, ...] = ()
    sockets: tuple[Path, ...] = ()
    attributes: Path | None = None
    session: str = ""
    closed: tuple[Path, ...] = ()
    linked: tuple[Path, ...] = ()


# Of the kernel's own files, what root could change although its rights end at the sandbox.
_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/mtrr")
_RESOLVER = list_places("resolver")
_SYSTEM = list_places("system")
_SYSTEM_SETTINGS = list_places("system settings")
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108  # mount points, not files of ours
MOST_SOCKETS = 40
LARGEST_DECOY = 50_000_000
"""Bytes of a closed file for which git is shown an empty one of the same size."""


def view(bounds: Bounds, scratch: Path) -> list[str]:
    """Return the mount options; `scratch` holds what commands write to /tmp and the home."""
    return list(_reading(bounds, scratch) if bounds.read_only else _working(bounds, scratch))


def _working(bounds: Bounds, scratch: Path) -> Iterator[str]:
    """Everything of the system for reading, an almost empty home, the workspace for writing."""
    here = host_places(network=bounds.network)
    open_places = [place.resolve() for place in (*bounds.roots, *bounds.writable)]
    yield from ("--ro-bind", "/", "/", *_devices(), "--tmpfs", "/run")
    for place in _RESOLVER:
        yield from ("--ro-bind-try", place, place)
    yield from _hide(here.system_secrets)
    foreign = here.foreign
    for place in foreign:
        if str(place) not in _TEMPORARY and not any(
            is_within(place, other) for other in foreign if other != place
        ):
            yield from ("--tmpfs", str(place))
    for name in _TEMPORARY:
        yield from ("--bind", str(_folder(scratch, name.strip("/").replace("/", "-"))), name)
    for place in here.homes:
        yield from _home(place, scratch, network=bounds.network)
    for place in here.tools:
        if any(is_within(place, hidden) for hidden in foreign):
            yield from ("--ro-bind-try", str(place.resolve()), str(place))
    hidden = [
        place
        for place in here.secrets
        if not any(is_within(place.resolve(), w.resolve()) for w in bounds.writable)
    ]
    around = [place for place in hidden if any(is_within(root, place) for root in open_places)]
    yield from _hide(place for place in around if not any(is_within(place, other) for other in foreign))
    for place in bounds.readable:
        yield from ("--ro-bind", str(place), str(place))
    for place in dict.fromkeys(open_places):
        if place.exists() and str(place) not in _TEMPORARY:
            yield from ("--bind", str(place), str(place))
    yield from _pin(open_places, bounds.closed)
    yield from _keep(bounds)
    yield from _hide(
        place for place in hidden if place not in around and _seen(place, open_places, bounds, foreign)
    )
    yield from _hide(bounds.masked)
    yield from _cut_off(open_places, bounds, foreign)
    yield from _mask(bounds, scratch)


def _home(place: Path, scratch: Path, *, network: bool) -> Iterator[str]:
    """Yield the arguments that bind the home of commands with network, or of those without.

    Settings that a command without network writes, such as ~/.curlrc, would tell the others where to send data. Downloads
    are shared, and installed programs are read-only without network.
    """
    name = str(place).replace("/", "-")
    yield from ("--bind", str(_folder(scratch, f"{'network-' if network else ''}home{name}")), str(place))
    for each in (*DOWNLOAD_CACHES, *USER_INSTALLS):
        shared = _folder(scratch, f"shared{name}-{each.replace('/', '-')}")
        if network or any(shared.iterdir()):
            kind = "--ro-bind" if each in USER_INSTALLS and not network else "--bind"
            yield from (kind, str(shared), str(place / each))


def _reading(bounds: Bounds, scratch: Path) -> Iterator[str]:
    """Yield the options for read-only access to the workspace and programs; links that lead elsewhere are broken."""
    for name in _SYSTEM:
        place = Path(name)
        if place.is_symlink():
            yield from ("--symlink", str(place.readlink()), name)
        elif place.is_dir():
            yield from ("--ro-bind", name, name)
    for name in _SYSTEM_SETTINGS:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    yield from _devices()
    for name in _TEMPORARY:
        yield from ("--tmpfs", name)
    own = daiku_places()
    for place, real in program_places(build_safe_path(os.environ.get("PATH", ""), bounds.roots)):
        if not any(is_within(place, Path(name)) for name in _SYSTEM):
            yield from ("--ro-bind", str(real), str(place))
    for place in dict.fromkeys((*bounds.readable, *(root.resolve() for root in bounds.roots))):
        if place.is_dir():
            yield from ("--ro-bind", str(place), str(place))
    open_places = [root.resolve() for root in (*bounds.roots, *bounds.readable)]
    hidden = (*host_places(network=False).secrets, *own)
    yield from _hide(
        place
        for place in dict.fromkeys(hidden)
        if any(is_within(place, root) for root in open_places)
        and not any(is_within(root, place) for root in open_places)
    )
    yield from _hide(bounds.masked)
    yield from _mask(bounds, scratch)
    yield from _attributes(bounds, scratch)
    yield from ("--remount-ro", "/")


def _mask(bounds: Bounds, scratch: Path) -> Iterator[str]:
    """Cover closed files. A reading git gets files of the same size and time, so that it takes them for unchanged."""
    for place in bounds.closed:
        if place.is_dir():
            yield from ("--tmpfs", str(place), "--remount-ro", str(place))
        else:
            cover = _decoy(place, scratch) if bounds.attributes is not None else "/dev/null"
            yield from ("--ro-bind", cover, str(place))


def _decoy(place: Path, scratch: Path) -> str:
    found = place.stat()
    if found.st_size > LARGEST_DECOY:
        return "/dev/null"
    decoy = _folder(scratch, "decoys") / f"{found.st_size}-{found.st_mtime_ns}-{found.st_mode & 0o777:o}"
    if not decoy.exists():
        decoy.touch()
        os.truncate(decoy, found.st_size)
        decoy.chmod(found.st_mode & 0o777)
        os.utime(decoy, ns=(found.st_mtime_ns, found.st_mtime_ns))
    return str(decoy)


def _attributes(bounds: Bounds, scratch: Path) -> Iterator[str]:
    """Return git attributes that override those of the work tree, so that no diff shows a file of secrets."""
    if bounds.attributes is None:
        return
    names = [
        place.relative_to(root) for root in bounds.roots for place in bounds.closed if is_within(place, root)
    ]
    text = secret_attributes(names)
    written = scratch / f"attributes-{sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
    if not written.exists():
        written.write_text(text, encoding="utf-8", errors="surrogateescape")
    info, folder = bounds.attributes, bounds.attributes.parent
    if info.is_symlink() or not info.is_dir():  # then the git folder is put together anew around it
        yield from ("--tmpfs", str(folder))
        for entry in sorted(folder.iterdir()):
            if entry.is_symlink() and entry != info:
                yield from ("--symlink", str(entry.readlink()), str(entry))
            elif entry != info:
                yield from ("--ro-bind", str(entry), str(entry))
    yield from ("--tmpfs", str(info))
    if (exclude := info / "exclude").is_file() and not info.is_symlink():
        yield from ("--ro-bind", str(exclude), str(exclude))
    yield from ("--ro-bind", str(written), str(info / "attributes"))


def _devices() -> Iterator[str]:
    yield from ("--dev", "/dev", "--proc", "/proc")
    for place in _KERNEL:
        if Path(place).exists():
            yield from ("--ro-bind-try", place, place)
    if Path("/dev/shm").is_dir():  # noqa: S108  # a mount point, not a file of ours
        yield from ("--tmpfs", "/dev/shm")  # noqa: S108  # likewise


def _pin(roots: list[Path], closed: tuple[Path, ...]) -> Iterator[str]:
    """Bind the folders above closed files: a mount point cannot be moved to where .daikuignore does not close it."""
    above = {
        folder for place in closed for folder in place.parents if any(r in folder.parents for r in roots)
    }
    for folder in sorted(above):
        yield from ("--bind", str(folder), str(folder))


def _keep(bounds: Bounds) -> Iterator[str]:
    """Places that stay as they are.

    What lies directly in a folder of the workspace (`.git/hooks`) keeps that folder too: a mount point cannot be moved
    away and put up anew around what it protects.
    """
    roots = {root.resolve() for root in bounds.roots}
    for folder in dict.fromkeys(place.parent for place in bounds.kept if place.parent.parent in roots):
        if folder not in bounds.kept:
            yield from ("--bind", str(folder), str(folder))
    for place in (*bounds.kept, *bounds.linked):
        yield from ("--ro-bind", str(place), str(place))


def _cut_off(open_places: list[Path], bounds: Bounds, foreign: tuple[Path, ...]) -> Iterator[str]:
    """Sockets that lead out of the sandbox are covered."""
    left = MOST_SOCKETS
    for place in dict.fromkeys((*listening_sockets(), *relative_sockets(bounds.sockets))):
        if left and not is_within(place, Path("/run")) and _seen(place, open_places, bounds, foreign):
            left -= 1
            yield from ("--ro-bind", "/dev/null", str(place))


def _seen(place: Path, open_places: list[Path], bounds: Bounds, foreign: tuple[Path, ...]) -> bool:
    """Report whether `place` stays visible once homes are hidden: it is in no home, or in a root inside one."""
    if any(is_within(place, opened) for opened in (*open_places, *bounds.readable)):
        return True
    return not any(is_within(place, hidden) for hidden in (*foreign, *map(Path, _TEMPORARY)))


def _folder(scratch: Path, name: str) -> Path:
    place = scratch / name
    place.mkdir(mode=0o700, exist_ok=True)
    return place


def _hide(places: Iterable[Path]) -> Iterator[str]:
    for place in places:
        if place.is_dir():
            yield from ("--tmpfs", str(place))
        else:
            yield from ("--ro-bind", "/dev/null", str(place))

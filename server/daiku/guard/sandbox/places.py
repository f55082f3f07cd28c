"""Places of this machine that a sandboxed command may see: tool chains of the home, nothing with credentials."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from daiku.dataclass import dataclass
from daiku.workspace.paths import find_homes, is_within
from daiku.workspace.programs import REPOSITORY_FOLDERS, get_cache_period

_TABLES = cast("Mapping[str, Any]", json.loads(Path(__file__).with_name("places.json").read_text("utf-8")))


def list_places(table: str) -> tuple[str, ...]:
    """Return the places of a table of places.json."""
    return tuple(_TABLES[table])


# Of a home only these are shown, for reading. A folder that also holds credentials is named by its parts.
TOOL_PLACES = list_places("tools")
# Not ~/.cache/go-build: go does nothing at all where it cannot write its cache; in the sandbox's own home it can.
# A package manager that may fetch needs a cache that it can write: these are shown only without the network.
OFFLINE_PLACES = list_places("offline tools")
DOWNLOAD_CACHES = list_places("download caches")
"""Folders of a home into which package managers download, shared by commands with and without network."""
USER_INSTALLS = list_places("user installs")
"""Folders of a home into which package managers install programs. Commands without network only read them."""
# Settings of tool chains: shown where nothing in them looks like a credential.
SETTING_PLACES = list_places("settings")
_CREDENTIAL = re.compile(
    r"token|pass|secret|auth|credential|_key|apikey|bearer|cookie|://[^/\s]*@", re.IGNORECASE
)
_LARGEST_SETTING = 20_000
# Where a tool chain lies when its variable says so, and which parts of it count; "" is all of it.
TOOL_VARIABLES = {name: tuple(parts) for name, parts in _TABLES["tool variables"].items()}
INSTALLED_PARTS = ("lib", "lib64", "libexec", "share", "include", "conf", "pyvenv.cfg")
"""What an installation has beside its `bin`; of a repository these are sources, and not shown."""
# What of a home that is itself the workspace, or lies in it, is hidden all the same.
SECRET_PLACES = list_places("secrets")
# What of the system only its administrator may read; the server may be running as one.
SYSTEM_SECRETS = list_places("system secrets")
# Other people's homes, other systems' disks.
FOREIGN_PLACES = ("/home", "/root", "/Users", "/mnt", "/media", "/run/media", "/var/tmp")  # noqa: S108  # names only


def daiku_places() -> list[Path]:
    """Where Daiku keeps its own things."""
    home = Path.home()
    places = [Path(own)] if (own := os.environ.get("DAIKU_HOME")) else []
    for variable, usual in (
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_STATE_HOME", ".local/state"),
    ):
        places.append(Path(os.environ.get(variable) or str(home / usual)) / "daiku")
    return _real(places)


def secret_places() -> list[Path]:
    """Credentials of the person and Daiku's own things, as far as they are there."""
    return [*_real(home / name for home in find_homes() for name in SECRET_PLACES), *daiku_places()]


def system_secrets() -> list[Path]:
    """Return the system's secret files that exist if the server runs as root; nobody else can read them."""
    return _real(map(Path, SYSTEM_SECRETS)) if os.geteuid() == 0 else []


def hidden_places() -> list[Path]:
    """Return folders to hide completely: homes, mounted media, /var/tmp; empty ones are left out."""
    found = [place for place in _real(map(Path, FOREIGN_PLACES)) if not _empty(place)]
    return list(dict.fromkeys([*found, *find_homes()]))


def tool_places(environ: Mapping[str, str], *, network: bool) -> list[Path]:
    """Tool chains in homes that are shown again: the known ones, and those that the environment names."""
    own = find_homes()
    found = [home / name for home in own for name in TOOL_PLACES]
    found += [home / name for home in own for name in OFFLINE_PLACES if not network]
    found += [home / name for home in own for name in SETTING_PLACES if _holds_no_credential(home / name)]
    for variable, parts in TOOL_VARIABLES.items():
        folder = Path(environ.get(variable) or ".")
        if folder.is_absolute() and not _too_wide(folder, own):
            found += [folder / part for part in parts]
    return _shown((*found, *path_places(environ.get("PATH", ""))), own)


def path_places(path: str) -> list[Path]:
    """Return the folders of `path` (as of PATH), and beside a `bin` the other parts of an installation."""
    own = find_homes()
    found: list[Path] = []
    for entry in filter(None, path.split(os.pathsep)):
        folder = Path(entry)
        if not folder.is_absolute() or _too_wide(folder, own):
            continue
        found.append(folder)
        above = folder.parent
        is_source = any((above / name).exists() for name in REPOSITORY_FOLDERS)
        if folder.name in ("bin", "sbin") and not _too_wide(above, own) and not is_source:
            found += [place for name in INSTALLED_PARTS if (place := above / name).exists()]
    return found


def program_places(path: str) -> tuple[tuple[Path, Path], ...]:
    """Return the existing, visible folders of `path_places`, each with its resolved path; cached for a few seconds."""
    return _program_places(path, get_cache_period())


@lru_cache(maxsize=8)
def _program_places(path: str, _now: int) -> tuple[tuple[Path, Path], ...]:
    found: list[tuple[Path, Path]] = []
    for place in path_places(path):
        with suppress(OSError):
            if place.exists():
                found.append((place, place.resolve()))
    return tuple(found)


def _too_wide(folder: Path, own: Iterable[Path]) -> bool:
    """Report whether showing `folder` would expose a home or a system folder."""
    real = folder.resolve()
    return len(real.parts) < 3 or any(is_within(home, real) for home in own) or str(real) in FOREIGN_PLACES


def _shown(places: Iterable[Path], own: tuple[Path, ...]) -> list[Path]:
    """Those of `places` that are there and that are no secret; a link counts where it leads."""
    secret = {Path(home / name) for home in own for name in SECRET_PLACES}
    found: dict[Path, None] = {}
    for place in places:
        with suppress(OSError):
            real = place.resolve()
            if place.exists() and not any(is_within(real, hidden) for hidden in secret):
                found[place] = None
                if real != place and any(is_within(real, home) for home in own):
                    found[real] = None
    return [place for place in found if not any(folder in found for folder in place.parents)]


def _empty(place: Path) -> bool:
    try:
        with os.scandir(place) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _holds_no_credential(place: Path) -> bool:
    with suppress(OSError):
        if stat.S_ISREG(place.stat().st_mode) and place.stat().st_size <= _LARGEST_SETTING:
            return not _CREDENTIAL.search(place.read_text(encoding="utf-8", errors="replace"))
    return False


def _real(places: Iterable[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for place in places:
        with suppress(OSError):
            if place.exists():
                found[place.resolve()] = None
    return list(found)


def listening_sockets() -> Iterator[Path]:
    """Unix sockets on disk that a process of this machine answers at: each is a way out of a sandbox."""
    for name in _socket_names():
        place = Path(name)
        with suppress(OSError):
            if place.is_absolute() and stat.S_ISSOCK(place.stat().st_mode):
                yield place.resolve()


def relative_sockets(sockets: tuple[Path, ...]) -> Iterator[Path]:
    """Yield those of `sockets` that may be bound by a relative path, compared by name."""
    names = (
        {Path(name).name for name in _socket_names() if not name.startswith("/")} if sockets else set[str]()
    )
    return (place for place in sockets if place.name in names)


def _socket_names() -> Iterator[str]:
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines()[1:]:
            name = line.split(maxsplit=7)[7:]
            if name and not name[0].startswith("@"):
                yield name[0]


@dataclass(frozen=True, slots=True)
class HostPlaces:
    """What is hidden and shown of this machine, whatever the command."""

    foreign: tuple[Path, ...]
    homes: tuple[Path, ...]
    system_secrets: tuple[Path, ...]
    secrets: tuple[Path, ...]
    tools: tuple[Path, ...]


def host_places(*, network: bool) -> HostPlaces:
    """Return the places of this machine to hide and show, cached for a few seconds."""
    named = (
        *TOOL_VARIABLES,
        "HOME",
        "PATH",
        "DAIKU_HOME",
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    )
    return _machine(tuple(os.environ.get(name) for name in named), network, get_cache_period())


@lru_cache(maxsize=8)
def _machine(_environ: tuple[str | None, ...], network: bool, _now: int) -> HostPlaces:
    return HostPlaces(
        foreign=tuple(hidden_places()),
        homes=find_homes(),
        system_secrets=tuple(system_secrets()),
        secrets=tuple(secret_places()),
        tools=tuple(tool_places(os.environ, network=network)),
    )

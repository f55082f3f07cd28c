"""A sandbox that discards what a command writes: overlays over the workspace and over the sandbox's own folders."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from filecmp import cmp
from functools import cache, lru_cache
from pathlib import Path

from daiku.dataclass import dataclass, replace
from daiku.guard.sandbox import Bounds, bubblewrap, nested_argv, sandbox_argv, scratch_folder
from daiku.workspace.paths import is_within

NOT_MOUNTED = 117
"""Exit code of a command whose overlays could not be mounted."""
PROBE_SECONDS = 10
CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".npm", ".cache"})
"""Folders of caches. Programs fill them again, so a write to them may be lost."""
_MOUNT = (
    'while [ "$1" != -- ]; do '
    'mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3,userxattr" "$1" || exit 117; '
    'shift 3; done; shift; exec "$@"'
)


@dataclass(frozen=True, slots=True)
class Layer:
    """A folder, and the folder that receives what is written in it."""

    lower: Path
    upper: Path
    work: Path


@contextmanager
def open_layers(roots: tuple[Path, ...]) -> Generator[tuple[Layer, ...] | None]:
    """Yield a layer for each root and for the sandbox's scratch folder; None where overlays do not work here.

    What is written is deleted at the end. Blocks. Raises OSError.
    """
    folders = [*dict.fromkeys(root.resolve() for root in roots), scratch_folder().resolve()]
    if not can_overlay() or not _fit(folders):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="daiku-trial-", ignore_cleanup_errors=True) as store:
        yield _layers(folders, Path(store))


def _layers(folders: list[Path], store: Path) -> tuple[Layer, ...]:
    layers: list[Layer] = []
    for number, folder in enumerate(folders):
        layer = Layer(folder, store / f"{number}-upper", store / f"{number}-work")
        layer.upper.mkdir()
        layer.work.mkdir()
        layers.append(layer)
    return tuple(layers)


def _fit(folders: list[Path]) -> bool:
    """Return True if every folder can be named in mount options and none lies in another."""
    named = not any(sign in str(folder) for folder in folders for sign in ",:\\")
    return named and not any(is_within(a, b) for a in (*folders, *_mounts()) for b in folders if a != b)


def _mounts() -> list[Path]:
    """Return the mount points of this machine: an overlay does not show those that lie in its folder."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    return [Path(line.split()[4]) for line in lines]


def trial_argv(argv: list[str], bounds: Bounds, cwd: Path, layers: tuple[Layer, ...]) -> list[str]:
    """Return `argv` in a sandbox whose writes go to `layers`. The mounts need a namespace of their own around it."""
    around = [bubblewrap(), "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "CAP_SYS_ADMIN"]
    around += ["--dev-bind", "/", "/", "--die-with-parent", "--", "/bin/sh", "-c", _MOUNT, "sh"]
    mounts = [str(place) for layer in layers for place in (layer.lower, layer.upper, layer.work)]
    return [*around, *mounts, "--", *nested_argv(argv, bounds, cwd)]


def make_mount_points(bounds: Bounds, cwd: Path) -> None:
    """Run an empty command in the usual sandbox once. Blocks.

    bubblewrap creates mount points in its scratch folder, which a trial must not count as writes of its command.
    """
    _make_mount_points(replace(bounds, kept=(), masked=(), sockets=(), session=""), cwd, scratch_folder())


@lru_cache(maxsize=16)
def _make_mount_points(bounds: Bounds, cwd: Path, _scratch: Path) -> None:
    argv = sandbox_argv(["true"], bounds, cwd)
    subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False)


def written_paths(layers: tuple[Layer, ...]) -> Iterator[str]:
    """Yield the paths that a command created, changed, or deleted, except in caches. Blocks."""
    for layer in layers:
        for folder, folders, files in os.walk(layer.upper):
            folders[:] = [name for name in folders if name not in CACHES]
            for name in (*folders, *files):
                upper = Path(folder, name)
                lower = layer.lower / upper.relative_to(layer.upper)
                if _is_changed(upper, lower):
                    yield str(lower)


def _is_changed(upper: Path, lower: Path) -> bool:
    try:
        new, old = upper.lstat(), lower.lstat()
    except OSError:
        return True
    if (new.st_mode, new.st_uid, new.st_gid) != (old.st_mode, old.st_uid, old.st_gid):
        return True
    if stat.S_ISDIR(new.st_mode):
        return _opaque(upper) == b"y"
    if stat.S_ISLNK(new.st_mode):
        return upper.readlink() != lower.readlink()
    same = (new.st_size, new.st_mtime_ns) == (old.st_size, old.st_mtime_ns)
    return not (same and stat.S_ISREG(new.st_mode) and cmp(upper, lower, shallow=False))


def _opaque(folder: Path) -> bytes:
    try:
        return os.getxattr(folder, "user.overlay.opaque")
    except OSError:
        return b""


@cache
def can_overlay() -> bool:
    """Return True if a file that a trial writes is found in its layer and not in the folder."""
    if not bubblewrap():
        return False
    try:
        with tempfile.TemporaryDirectory(prefix="daiku-", ignore_cleanup_errors=True) as store:
            folder = Path(store, "folder")
            folder.mkdir()
            layers = _layers([folder], Path(store))
            argv = trial_argv(["/bin/sh", "-c", "echo > probe"], Bounds(roots=(folder,)), folder, layers)
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False
            )
            return done.returncode == 0 and list(written_paths(layers)) == [str(folder / "probe")]
    except (OSError, subprocess.SubprocessError):
        return False

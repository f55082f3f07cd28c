"""The folders whose own settings file a person trusts, listed in a file of Daiku's home."""

from __future__ import annotations

from pathlib import Path

NAME = "trusted-folders"


def trusted_folders(home: Path) -> tuple[str, ...]:
    """The real paths of all trusted folders, oldest first."""
    try:
        lines = (home / NAME).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        return ()
    return tuple(line for line in lines if line)


def is_trusted(home: Path, folder: Path) -> bool:
    """True for a folder on the list and for what is inside one."""
    real = folder.resolve()
    return any(real.is_relative_to(listed) for listed in trusted_folders(home))


def set_trusted(home: Path, folder: Path, *, trusted: bool) -> None:
    """Put a folder on the list or take it off. Raises OSError."""
    real = str(folder.resolve())
    kept = [name for name in trusted_folders(home) if name != real]
    path = home / NAME
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text("".join(f"{name}\n" for name in (*kept, *([real] if trusted else []))), encoding="utf-8")

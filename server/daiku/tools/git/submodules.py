"""Submodules of a repository: git shows of them only that they changed, so each is asked itself."""

from __future__ import annotations

from pathlib import Path

from daiku.core.ports import Workspace
from daiku.tools.git.repository import Repository, repository

MOST = 50
"""Submodules that are asked."""
_PATHS = ("config", "--file", ".gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$")


async def find_submodules(
    found: Repository, names: list[str], workspace: Workspace
) -> tuple[tuple[Path, Repository], ...]:
    """Return the submodules that are checked out below the folder of `found`, and that `names` lead to."""
    code, top = await found.run(["rev-parse", "--show-toplevel"])
    above = Path(top.strip())
    if code != 0 or not (above / ".gitmodules").is_file():  # one look
        return ()
    whole = Repository(found.git, above, found.roots, found.off, found.of_items)
    _, listed = await whole.names(list(_PATHS))
    root = found.root.resolve()  # likewise
    wanted = [root / name if name != "." else root for name in names] or [root]
    asked: list[tuple[Path, Repository]] = []
    for each in listed.split("\0")[:MOST]:
        place = above / each.partition("\n")[2]
        near = any(place.is_relative_to(name) for name in wanted)
        if not near or place == above or not _is_checked_out(place, root) or workspace.hidden(place):
            continue
        nested = await repository(place, found.roots)
        if isinstance(nested, Repository):
            asked.append((place.relative_to(root), nested))
    return tuple(asked)


def nearest_repository(root: Path, places: list[Path]) -> Path:
    """Return the submodule below `root` that all the places lie in, or `root`."""
    around = places[0].parents if places else ()
    inner = (
        folder
        for folder in around
        if root in folder.parents
        and (folder / ".git").exists()
        and all(folder in each.parents for each in places)
    )
    return next(inner, root)


def _is_checked_out(place: Path, root: Path) -> bool:
    """Return True for a repository of its own in `root`, which no link leads to."""
    return place.is_relative_to(root) and place.resolve() == place and (place / ".git").exists()

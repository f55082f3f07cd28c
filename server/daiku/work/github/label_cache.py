"""Times at which trusted people set the label of items, in a file: the next start of a worker does not ask again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from daiku.domain.base import Frozen


class Labelled(Frozen):
    """Time of an item's label; valid until the item changes again after `updated`."""

    updated: str
    labelled_at: str


class _Content(Frozen):
    """Content of the file: the label that is looked for, and the items of each repository by number."""

    label: str = ""
    repositories: dict[str, dict[int, Labelled]] = Field(default_factory=dict[str, dict[int, Labelled]])


class LabelCache:
    """Cache of the times of `label`. The push access of a label's author is checked again when an item is claimed.
    Without a path nothing is cached; a file that cannot be read or written is ignored."""

    def __init__(self, path: Path | None, label: str) -> None:
        self._path = path
        self._label = label

    def load(self, repository: str) -> Mapping[int, Labelled]:
        """Return the items of the repository by number."""
        return self._read().repositories.get(repository, {})

    def save(self, repository: str, items: Mapping[int, Labelled]) -> None:
        """Replace the items of the repository if they changed."""
        content = self._read()
        if self._path is None or content.repositories.get(repository, {}) == items:
            return
        new = _Content(label=self._label, repositories={**content.repositories, repository: dict(items)})
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            part.write_text(new.model_dump_json(), "utf-8")
            part.replace(self._path)
        except OSError:
            part.unlink(missing_ok=True)

    def _read(self) -> _Content:
        try:
            content = _Content.model_validate_json(self._path.read_bytes()) if self._path else _Content()
        except (OSError, ValidationError):
            return _Content()
        return content if content.label == self._label else _Content()

"""Times at which trusted people set the label of items, in a file: the next start of a worker does not ask again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, ValidationError

from daiku.domain.base import Frozen


class Labelled(Frozen):
    """When the label of an item was set, found out when the item was last changed at `updated`."""

    updated: str
    labelled_at: str


class _Content(Frozen):
    """The file: the label that is looked for, and the items of each repository by number."""

    label: str = ""
    repositories: dict[str, dict[int, Labelled]] = Field(default_factory=dict[str, dict[int, Labelled]])


class LabelCache:
    """The answers for `label`. Whether its author may still push is asked again when an item is claimed. Without a path
    nothing is kept; a file that cannot be read or written is passed over."""

    def __init__(self, path: Path | None, label: str) -> None:
        self._path = path
        self._label = label

    def load(self, repository: str) -> Mapping[int, Labelled]:
        """Return the items of the repository by number."""
        return self._read().repositories.get(repository, {})

    def save(self, repository: str, items: Mapping[int, Labelled]) -> None:
        """Replace the items of the repository, unless they are as they were."""
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

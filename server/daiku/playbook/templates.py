"""Prompts of the Generator: a text template for each dataset, filled in one pass."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from daiku.domain.errors import Failure, UsageError
from daiku.domain.playbook import Bullet
from daiku.prompts import find_prompts_folder
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import text

PROMPTS_DIR = "prompts/generator"
DEFAULT = "default"
CONTEXT_SECTION = "## 知識ベース\n{context}"
QUERY_SECTION = "## タスク\n{query}"
FALLBACK = (
    "以下の知識ベースを参考にして、タスクに回答してください.\n\n"
    f"{CONTEXT_SECTION}\n\n{QUERY_SECTION}\n\n## 回答\n"
)
"""Template if there is no `default.txt`."""
_NAME = lazy(r"[A-Za-z0-9_.-]+")
_HOLE = lazy(r"\{\{|\}\}|\{(context|query)\}")
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
"""Errors of a missing file; any other error is raised."""


def check_dataset(name: str) -> None:
    """Raise UsageError if `name` is not a valid dataset name, which becomes a file name."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(Failure(kind="usage", message=text("generate.bad_dataset", name=ascii(name[:80]))))


class PromptBuilder:
    """Builds prompts from the templates of a folder (R3.10–R3.13).

    If `prompts_dir` does not exist, Daiku's own folder is used. `own` returns a template for a dataset that
    overrides the folder's, or None.
    """

    def __init__(
        self, prompts_dir: str | Path = PROMPTS_DIR, own: Callable[[str], str | None] | None = None
    ) -> None:
        given = Path(prompts_dir)
        shipped = given == Path(PROMPTS_DIR) and not given.is_dir()
        self._folder = find_prompts_folder() / given.name if shipped else given
        self._own = own

    def build(self, query: str, bullets: Sequence[Bullet], dataset: str) -> str:
        """Return the prompt for `query` with the contents of all `bullets`.

        Inserted text is not parsed again: a bullet with `{query}` is unchanged. Raises UsageError for an
        invalid dataset name, OSError, ValueError.
        """
        context = "\n".join(bullet.content for bullet in bullets)
        return fill(self._load_template(dataset), context, query)

    def _load_template(self, dataset: str) -> str:
        """Return the template of the dataset, else the default one, else `FALLBACK`."""
        check_dataset(dataset)
        templates = (self._read(name) for name in dict.fromkeys((dataset, DEFAULT)))
        return next((template for template in templates if template is not None), FALLBACK)

    def _read(self, name: str) -> str | None:
        own = self._own(name) if self._own is not None else None
        if own is not None:
            return own
        try:
            return (self._folder / f"{name}.txt").read_text("utf-8-sig")
        except OSError as wrong:
            if wrong.errno in _MISSING:
                return None
            raise


def fill(template: str, context: str, query: str) -> str:
    """Insert both into `template`, and unescape `{{` and `}}`; other braces are text.

    If a placeholder is missing, its section is appended.
    """
    values = {"context": context, "query": query}
    used: set[str] = set()

    def value(hole: re.Match[str]) -> str:
        name = hole[1]
        if name is None:
            return hole[0][0]
        used.add(name)
        return values[name]

    filled = _HOLE.sub(value, template)
    sections = (("context", CONTEXT_SECTION), ("query", QUERY_SECTION))
    added = [
        _HOLE.sub(lambda hole: values[hole[1]], section) for name, section in sections if name not in used
    ]
    return "\n\n".join([filled, *added])

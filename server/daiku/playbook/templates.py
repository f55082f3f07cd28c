"""Prompts of the Generator: a plain-text template for each dataset, filled in in one pass."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from daiku.domain.errors import Failure, UsageError
from daiku.domain.playbook import Bullet
from daiku.prompts import prompts_folder
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
"""What is used where there is not even a template `default.txt`."""
_NAME = lazy(r"[A-Za-z0-9_.-]+")
_HOLE = lazy(r"\{\{|\}\}|\{(context|query)\}")
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
"""A file that cannot be there under this name; any other fault is one of reading it."""


def check_dataset(name: str) -> None:
    """Raises UsageError where `name` is none of a dataset: it becomes the name of a file."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(Failure(kind="usage", message=text("generate.bad_dataset", name=ascii(name[:80]))))


class PromptBuilder:
    """Builds prompts from the templates of one folder (R3.10–R3.13). `prompts_dir` that does not exist here means
    Daiku's own. `own` gives the text of a template that stands in place of the folder's, by the dataset; None where there
    is none."""

    def __init__(
        self, prompts_dir: str | Path = PROMPTS_DIR, own: Callable[[str], str | None] | None = None
    ) -> None:
        given = Path(prompts_dir)
        shipped = given == Path(PROMPTS_DIR) and not given.is_dir()
        self._folder = prompts_folder() / given.name if shipped else given
        self._own = own

    def build(self, query: str, bullets: Sequence[Bullet], dataset: str) -> str:
        """The prompt for `query`, with the contents of all `bullets`. What is put in is never looked at again: a bullet
        that says `{query}` stays as it is. Raises UsageError for what is no name of a dataset, OSError, ValueError."""
        context = "\n".join(bullet.content for bullet in bullets)
        return fill(self._load_template(dataset), context, query)

    def _load_template(self, dataset: str) -> str:
        """The template of the dataset, else the default one, else the one in code."""
        check_dataset(dataset)
        found = (self._read(name) for name in dict.fromkeys((dataset, DEFAULT)))
        return next((template for template in found if template is not None), FALLBACK)

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
    """`template` with both put in, and `{{`, `}}` as single braces; every other brace is text. Where it has no place for
    one of them, that one's section is added at the end."""
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

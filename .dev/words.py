"""The extension's words: one hand-written file a language below `extension/words`, and what VS Code wants made from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from tables import labels

from daiku.texts.text import ENGLISH

Words: TypeAlias = dict[str, str]
Provided: TypeAlias = list[tuple[str, str, str]]
"""Settings of providers: the editor's key of each, the entry that its words are made from, the provider's label."""

EXTENSION = Path(__file__).resolve().parent.parent / "extension"
SOURCES = EXTENSION / "words"
_MARKED = re.compile(r'\bt\(\s*("(?:[^"\\\n]|\\.)*")')


def languages() -> list[str]:
    """The languages there are: a file each."""
    return sorted(path.stem for path in SOURCES.glob("*.json"))


def manifest_words(language: str, provided: Provided) -> str:
    """The words of `package.json`: its `package.nls.json`. An entry for every provider becomes one for each."""
    made: Words = {}
    for name, text in _written(language, "manifest").items():
        of_providers = {
            f"config.{key}": text.format(label=label) for key, entry, label in provided if entry == name
        }
        made |= of_providers or {name: text}
    return _text(made)


def panel_words(language: str) -> str:
    """The words of the code, with those of the server's tables among them. In English they stand for themselves."""
    written = {word: word for word in marked()} if language == ENGLISH else _written(language, "words")
    return _text(dict(sorted({**written, **labels(language)}.items())))


def file_of(kind: str, language: str) -> str:
    """`package.nls.json` in English, `package.nls.ja.json` in Japanese."""
    return f"{kind}.json" if language == ENGLISH else f"{kind}.{language}.json"


def marked() -> Iterator[str]:
    """What the code of the extension and of its panel marks for translation: `t("…")`."""
    for room in ("src", "webview"):
        for path in sorted((EXTENSION / room).rglob("*.ts*")):
            if not path.name.endswith(".gen.ts"):
                yield from map(json.loads, _MARKED.findall(path.read_text(encoding="utf-8")))


def _written(language: str, part: str) -> Words:
    whole: dict[str, Words] = json.loads((SOURCES / f"{language}.json").read_text(encoding="utf-8"))
    return whole.get(part, {})


def _text(value: Words) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"

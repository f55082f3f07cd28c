"""Whoever lists providers in words lists them all: a provider that was forgotten somewhere is named with the place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from daiku.models.provider import ProviderEntry
from daiku.models.table import PROVIDERS
from tests.cases import for_each
from tests.conftest import PROVIDER_VARIABLES, ROOT

ENTRIES = tuple(entry for entry in PROVIDERS.values() if entry.needs != "script")
"""The script is no provider that a person connects."""
TEXTS = (
    "*.md",
    ".dev/*.mjs",
    "docs/**/*.md",
    "extension/webview/**/*.tsx",
    "extension/words/*.json",
    "prompts/**/*.*",
    "server/*.md",
    "server/daiku/texts/*.json",
)
"""Where somebody might list them. What is generated from the table is whole."""


def names(entry: ProviderEntry) -> tuple[str, ...]:
    """What a text may call it."""
    said = entry.label.removeprefix("Google ")
    return tuple(name for name in (said, *entry.key_env[:1], entry.address_env) if name)


def passages(path: Path) -> Iterator[str]:
    """The paragraphs of a page, the lines of code, the strings of JSON."""
    text = path.read_text("utf-8")
    if path.suffix != ".json":
        yield from text.split("\n\n" if path.suffix == ".md" else "\n")
        return
    pending = [json.loads(text)]
    while pending:
        match pending.pop():
            case str(said):
                yield said
            case dict(inner):
                pending.extend(inner.values())
            case _:
                pass


def forgotten(passage: str, entries: Iterable[ProviderEntry] = ENTRIES) -> list[str]:
    """The providers that a passage leaves out although it names others which need the same, two at least."""
    found: list[str] = []
    for need in ("key", "server"):
        those = [entry for entry in entries if entry.needs == need]
        left_out = [entry.name for entry in those if not any(name in passage for name in names(entry))]
        found += left_out if len(those) - len(left_out) > 1 else []
    return found


@for_each("path", [path for pattern in TEXTS for path in sorted(ROOT.glob(pattern))])
def test_a_list_of_providers_in_words_is_whole(path: Path) -> None:
    wrong = [
        f"{', '.join(left_out)} in: {each[:200]}" for each in passages(path) if (left_out := forgotten(each))
    ]
    assert not wrong, f"{path}: {wrong}"


@for_each("page", ["README.md", "docs/guide/connect.md"])
def test_a_page_says_how_to_connect_each_provider(page: str) -> None:
    table = next(part for part in passages(ROOT / page) if part.startswith("<!-- providers -->"))
    assert not [entry.name for entry in ENTRIES if not any(name in table for name in names(entry))]


def test_no_test_sees_the_persons_own_keys_and_addresses() -> None:
    variables = {name for entry in ENTRIES for name in (*entry.key_env, entry.address_env) if name}
    assert variables <= set(PROVIDER_VARIABLES), (
        f"tests/conftest.py lacks {variables - set(PROVIDER_VARIABLES)}"
    )


@for_each(
    ("passage", "left_out"),
    [
        ("Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY.", ["acme"]),
        ("OllamaかLM Studioを起動します", []),
        ("With a key of Anthropic or OpenAI, or with Ollama", ["gemini", "acme"]),
        ("Anthropic, OpenAI, Gemini and Acme", []),
        ("Start Ollama.", []),
    ],
)
def test_a_list_that_forgets_a_provider_is_found(passage: str, left_out: list[str]) -> None:
    acme = replace(
        PROVIDERS["anthropic"], name="acme", label="Acme", key_env=("ACME_KEY",), address_env="ACME_URL"
    )
    assert forgotten(passage, [*ENTRIES, acme]) == left_out

"""The documentation: its links, its references, its commands, and its settings."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote

import click
import pytest

import daiku
from daiku.domain.events import EVENTS
from daiku.fronts.cli.main import cli
from daiku.fronts.http.routes import ROUTES
from daiku.fronts.lsp.requests.commands import COMMANDS
from daiku.fronts.lsp.requests.methods import METHODS
from daiku.settings import every_key, from_mapping
from daiku.tools.table import build_builtin_tools
from daiku.version import __version__
from tests.cases import for_each
from tests.conftest import ROOT

sys.path.append(str(ROOT / ".dev"))
decisions = import_module("decisions")
reference = import_module("reference")

DOCS = ROOT / "docs"
OTHERS = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "extension/README.md"),
    *(
        "extension/README.ja.md",
        "extension/ARCHITECTURE.md",
        "server/README.md",
        "server/DECISIONS.md",
        "server/ship/README.md",
    ),
)
PAGES = [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in OTHERS)]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
README_LINES = 100
"""Lines of two screens."""
SENTENCE_WORDS = 25
NOT_SETTINGS = ("[project.", "[checks]")
"""What marks a TOML example that is no settings file."""


@cache
def text_of(page: Path) -> str:
    """Return a page with its generated parts."""
    return reference.fill(page.read_text("utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub and the site name them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text_of(page)), re.MULTILINE)
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    )


def dead_links(page: Path) -> Iterator[str]:
    """Yield each relative link of a page that leads nowhere, or from the site to a file outside of it."""
    for target in TARGET.findall(FENCE.sub("", text_of(page))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = unquote(target).partition("#")
        file = (page.parent / name).resolve() if name else page
        leaves_site = DOCS in page.parents and DOCS not in file.parents and file.suffix == ".md"
        if not file.exists() or leaves_site or (anchor and anchor not in anchors(file)):
            yield target


@for_each("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_page_has_no_dead_link(page: str) -> None:
    assert list(dead_links(ROOT / page)) == []


@pytest.mark.parametrize(
    ("link", "is_dead"),
    [
        ("[a](cli.md)", False),
        ("[a](cli.md#daiku-run)", False),
        ("[a](#one)", False),
        ("[a](https://example.com/x)", False),
        ("```\n[a](missing.md)\n```", False),
        ("[a](missing.md)", True),
        ("[a](cli.md#daiku-walk)", True),
        ("[a](#two)", True),
        ("![a](missing.png)", True),
        ("[a](../../README.md)", True),
    ],
)
def test_dead_link_is_found(
    link: str, is_dead: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A24.1"""
    monkeypatch.setitem(globals(), "DOCS", tmp_path / "docs")
    (tmp_path / "README.md").touch()
    folder = tmp_path / "docs" / "reference"
    folder.mkdir(parents=True)
    (folder / "cli.md").write_text("# Commands\n\n<!-- generated: commands -->\n", "utf-8")
    page = folder / "page.md"
    page.write_text(f"# One\n\n{link}\n", "utf-8")
    assert bool(list(dead_links(page))) is is_dead


def test_readme_fits_two_screens() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= README_LINES


def sentences(page: Path) -> Iterator[str]:
    """Yield the sentences of a page, without code and tables. A literal is one word."""
    text = re.sub(r"<!--.*?-->", "", FENCE.sub("", page.read_text("utf-8")), flags=re.DOTALL)
    lines = [line for line in text.splitlines() if not re.match(r" {4,}|\||#", line)]
    blocks = re.split(r"\n\s*\n|\n\s*(?:-|\d+\.) ", "\n".join(lines))
    for block in blocks:
        words = re.sub(r"`[^`]*`", "X", TARGET.sub("X", block).replace("\n", " "))
        yield from re.split(r"(?<=[.!?:;])\s+", words.strip())


WRITTEN = (
    *(
        ROOT / name
        for name in (
            "README.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "server/DECISIONS.md",
            "extension/README.md",
        )
    ),
    *sorted(set(DOCS.rglob("*.md")) - set(DOCS.glob("ja/**/*"))),
)


@for_each("page", WRITTEN)
def test_sentences_are_short_and_plain(page: Path) -> None:
    long = [each for each in sentences(page) if len(each.split()) > SENTENCE_WORDS]
    inverted = [
        s for s in sentences(page) if re.match(r"(?:What|Who|Whatever|Whoever|Those) ", s) and s[-1] != "?"
    ]
    assert (long, inverted) == ([], []), page


def test_changelog_has_one_line_an_entry_and_this_version() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
    releases = [line for line in lines if line.startswith("## ")]
    assert releases[0] == "## [Unreleased]"
    assert re.fullmatch(rf"## \[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d", releases[1])
    groups = {line for line in lines if line.startswith("### ")}
    assert groups <= {
        f"### {name}" for name in ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
    }
    assert [line for line in lines if line.startswith(" ")] == []


def test_index_of_the_decisions_needs_a_status() -> None:
    """A24.8"""
    page = "## Subject\n\n### Use A\n\nSuperseded by B.\n\n### Use B\n\nAccepted, 2026-11-29.\n"
    assert "| [Use A](#use-a) | superseded |\n| [Use B](#use-b) | accepted |" in decisions.index(page)
    with pytest.raises(ValueError, match="'Use B' has no status"):
        decisions.index(page.replace("Accepted", "Taken"))


def test_contributing_names_every_command() -> None:
    scripts = json.loads((ROOT / "package.json").read_text("utf-8"))["scripts"]
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert [name for name in scripts if not re.search(rf"`npm (run )?{name}`", page)] == []


def test_every_setting_is_in_the_reference() -> None:
    """A24.2"""
    page = text_of(DOCS / "reference" / "settings.md")
    documented = set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))
    patterns = {reference.pattern_of(key) for key in every_key()}
    assert patterns | set(reference.item_keys()) == documented
    assert documented == set(reference.descriptions()), "docs/reference/settings.toml"
    for key in every_key():
        names = set(key.split(".")) - set(reference.pattern_of(key).split("."))
        assert all(f"`{name}`" in page for name in names), key


def commands(command: click.Command = cli, path: tuple[str, ...] = ("daiku",)) -> Iterator[tuple[str, ...]]:
    """Yield the path of each command and subcommand."""
    if len(path) > 1:
        yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, name
            yield from commands(inner, (*path, name))


def test_every_command_and_option_is_in_the_reference() -> None:
    """A24.3"""
    sections = re.split(r"^#+ `(daiku [^`]+)`$", text_of(DOCS / "reference" / "cli.md"), flags=re.MULTILINE)
    by_command = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert sorted(by_command) == sorted(" ".join(path) for path in commands())
    for name, section in by_command.items():
        command, _ = find_command(name.split()[1:])
        options = [o for p in command.params if isinstance(p, click.Option) and not p.hidden for o in p.opts]
        assert all(f"`{option}`" in section for option in options), name


@for_each(
    ("page", "names"),
    [
        ("protocol.md", [*METHODS, *EVENTS, *COMMANDS]),
        ("http.md", [path for _, path, _ in ROUTES]),
        ("tools.md", [tool.name for tool in build_builtin_tools()]),
    ],
)
def test_reference_is_complete(page: str, names: list[str]) -> None:
    """A24.4"""
    text = text_of(DOCS / "reference" / page)
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_name_of_the_library_is_in_the_api_reference() -> None:
    documented = re.findall(
        r"^\.\. auto\w+:: daiku\.(\w+)$", (DOCS / "library/api.md").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(documented) == sorted(daiku._PLACES)


def test_docstring_becomes_restructuredtext() -> None:
    """A24.7"""
    text = "Return `*.py` of **all** folders (R1.10, R1.18–R1.21). `Tool`s stay (PROTOCOL 6)."
    assert reference.to_rst(text) == "Return ``*.py``\\  of \\*\\*all\\*\\* folders. ``Tool``\\ s stay."


def find_command(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that `words` call, and the words behind it."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words:
        inner = command.get_command(click.Context(command), words[0])
        if inner is None:
            break
        command, words = inner, words[1:]
    return command, words


def called() -> Iterator[tuple[str, str]]:
    """Yield each page with a line of a code block that calls `daiku`, without its comment."""
    for page in PAGES:
        for block in re.findall(r"(?:^ {4,}\S.*\n)+", text_of(page), re.MULTILINE):
            for line in re.findall(r"^ +(?:[A-Z_]+=\S+ )*(daiku(?: .*)?)$", block, re.MULTILINE):
                yield str(page.relative_to(ROOT)), re.split(r" [#>&|]|  ", line)[0]


def is_known(line: str) -> bool:
    """Return True if a command line names a command and options that exist."""
    command, words = find_command(shlex.split(line)[1:])
    options = {option for parameter in command.params for option in parameter.opts}
    return command is not cli and all(word in options for word in words if re.match(r"--?[a-zA-Z]", word))


def test_commands_in_the_docs_exist() -> None:
    """A24.5"""
    lines = set(called())
    assert len(lines) > 60
    assert [each for each in lines if not is_known(each[1])] == []


@for_each(
    ("line", "known"),
    [
        ("daiku run -C x 'Do it'", True),
        ("daiku playbook list --all", True),
        ("daiku walk", False),
        ("daiku run --walk", False),
        ("daiku playbook list --walk", False),
    ],
)
def test_unknown_command_is_found(line: str, known: bool) -> None:
    assert is_known(line) is known


def settings_examples() -> Iterator[tuple[str, str]]:
    """Yield each page with an example of a settings file."""
    for page in PAGES:
        for indent, language, code in FENCE.findall(text_of(page)):
            if language == "toml" and not any(mark in code for mark in NOT_SETTINGS):
                yield str(page.relative_to(ROOT)), re.sub(f"^{indent}", "", code, flags=re.MULTILINE)


def test_settings_in_the_docs_are_valid() -> None:
    """A24.6"""
    examples = list(settings_examples())
    assert len(examples) > 8
    for page, code in examples:
        assert from_mapping(tomllib.loads(code), {}), page


def test_the_japanese_guide_has_the_same_pages() -> None:
    english = {path.name for path in (DOCS / "guide").glob("*.md")}
    assert {path.name for path in (DOCS / "ja" / "guide").glob("*.md")} == english


@for_each("name", sorted(path.name for path in (DOCS / "ja" / "guide").glob("*.md")))
def test_a_japanese_page_shows_the_same_commands_and_sections(name: str) -> None:
    def outline(page: Path) -> tuple[list[int], list[str]]:
        text = FENCE.sub("", text_of(page))
        levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]
        lines = re.findall(r"^    ((?:daiku|npm|pip|curl) ?\S* ?[a-z]*)", text, re.MULTILINE)
        return levels, lines

    assert outline(DOCS / "ja" / "guide" / name) == outline(DOCS / "guide" / name)

"""Ignore rules: linear patterns, the repository above the folder, and git's exclude files outside the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from daiku.team.rules_files import read_rules
from daiku.workspace.ignores import Ignores, compile_patterns

HOSTILE = [
    ("**a" * 30 + "\n") * 200,
    "*a" * 40 + "b",
    "**/a" * 60 + "/**/b",
    "[a-z]*" * 50 + "Z",
    "?*" * 80 + "!",
    "/**/*a" * 40,
    "(a+)+$\n" * 500,
    "*" * 900,
    "*/" * 400 + "b",
]
INVALID = ["[z-a]", "\\", "[", "[" * 100, "a" * 5000, "**a" * 3000, "[[:foo:]]x", "\x00"]
PIECES = st.sampled_from(["a", "b", "ab", "*", "**", "?", "[ab]", "[!a]", "x.py", "é", ".", "\\*"])
PATTERNS = st.lists(st.lists(PIECES, min_size=1, max_size=3).map("".join), min_size=1, max_size=4).map(
    "/".join
)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "x.py", "é", "*", "abab"]), min_size=1, max_size=5)


def make_folder(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def left_out(root: Path, *names: str) -> list[str]:
    ignores = Ignores.of(root)
    return [name for name in names if ignores.leaves_out(root / name)]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    root = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", [".gitignore", ".daikuignore"])
def test_hostile_patterns_are_matched_in_linear_time(tmp_path: Path, text: str, name: str) -> None:
    """A23.5"""
    (tmp_path / name).write_text(text)
    long = "a" * 240
    (tmp_path / f"{long}b.txt").write_text("x")
    left_out(tmp_path, f"{long}b.txt", "/".join(["a" * 200] * 15), "/".join("a" * 40))


@pytest.mark.parametrize("pattern", INVALID)
def test_an_invalid_pattern_matches_nothing_and_spares_the_others(tmp_path: Path, pattern: str) -> None:
    """A23.5"""
    (tmp_path / ".gitignore").write_text(f"first.txt\n{pattern}\nlast.txt\n", encoding="utf-8")
    assert left_out(tmp_path, "first.txt", "middle.txt", "last.txt") == ["first.txt", "last.txt"]


@given(PATTERNS, PATHS.map("/".join))
def test_patterns_mean_what_the_backtracking_engine_says(pattern: str, path: str) -> None:
    expected = GitIgnoreSpec.from_lines([pattern], backend="simple").check_file(path).include
    specs = compile_patterns([pattern])
    assert [spec.check_file(path).include for spec in specs] == [expected]


def test_a_name_that_is_not_utf8_is_matched(tmp_path: Path) -> None:
    """A23.5"""
    (tmp_path / ".gitignore").write_text("*.txt\n")
    assert left_out(tmp_path, "a\udcff.txt", "b\udcff.py") == ["a\udcff.txt"]


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("clés.txt\n".encode(), normalize("NFD", "clés.txt")),
        (normalize("NFD", "clés/\n").encode(), "clés/a.txt"),
        ("パスワード/**\n".encode(), normalize("NFD", "パスワード/a/b")),
        (b"\xef\xbb\xbfprivate/\n", "private/a.txt"),
        ("private/\n".encode("utf-16"), "private/a.txt"),
        (b"\xfe\xff" + "private/\r\n".encode("utf-16-be"), "private/a.txt"),
        (b"x\r\nprivate/\r\n", "private/a.txt"),
        ("clés.txt\n".encode("latin-1"), "clés.txt"),
        ("clés.txt\n".encode("latin-1"), "cl\udce9s.txt"),
    ],
)
def test_a_closing_file_closes_however_it_is_encoded(tmp_path: Path, rules: bytes, name: str) -> None:
    """A23.6"""
    root = make_folder(tmp_path / normalize("NFD", "dépôt"), {"other.txt": ""})
    (root / ".daikuignore").write_bytes(rules)
    assert Ignores.of(root).closes(root / name)
    assert not Ignores.of(root).closes(root / "other.txt")


def test_many_patterns_keep_their_order(tmp_path: Path) -> None:
    """A23.5"""
    lines = ["x.txt", *(f"name{n}" for n in range(900)), "!x.txt", "name1*"]
    (tmp_path / ".gitignore").write_text("\n".join(lines))
    assert left_out(tmp_path, "x.txt", "name5", "name19", "other") == ["name5", "name19"]


def test_rules_above_the_opened_folder_count(repository: Path) -> None:
    """A23.5"""
    make_folder(
        repository,
        {".gitignore": "dist/\n.next/\n/packages/app/gen\n*.log\n", "packages/.gitignore": "!keep.log"},
    )
    app = make_folder(
        repository / "packages" / "app",
        {"dist/x.js": "", "src/x.ts": "", "gen": "", "keep.log": "", "a.log": ""},
    )
    assert left_out(app, "dist/x.js", "src/x.ts", "gen", "keep.log", "a.log") == ["dist/x.js", "gen", "a.log"]


def test_a_closing_file_above_the_opened_folder_closes(repository: Path) -> None:
    make_folder(repository, {".daikuignore": "secret.*\n"})
    app = make_folder(repository / "app", {"secret.txt": "", "open.txt": ""})
    assert Ignores.of(app).closes(app / "secret.txt")
    assert not Ignores.of(app).closes(app / "open.txt")


def test_a_folder_that_is_ignored_and_was_opened_is_shown(repository: Path) -> None:
    """A23.5"""
    make_folder(repository, {".gitignore": "vendor/\n"})
    vendored = make_folder(repository / "vendor" / "lib", {"x.py": ""})
    assert left_out(vendored, "x.py") == []


@pytest.mark.parametrize("where", ["global", "xdg", "local", "default"])
def test_the_users_exclude_file_counts(repository: Path, where: str) -> None:
    home = repository.parent / "home"
    mine = home / ".config" / "git" / "ignore" if where == "default" else home / "my excludes"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("*.swp\n")
    match where:
        case "global":
            subprocess.run(["git", "config", "--global", "core.excludesFile", "~/my excludes"], check=True)
        case "xdg":
            make_folder(
                home, {".config/git/config": f'[user]\n\tname = x\n[Core]\n\texcludesfile = "{mine}"\n'}
            )
        case "local":
            subprocess.run(
                ["git", "-C", str(repository), "config", "core.excludesFile", str(mine)], check=True
            )
        case _:
            pass
    assert left_out(repository, "a.swp", "a.txt") == ["a.swp"]


def test_the_repositorys_own_exclude_file_counts_and_the_tree_overrides_it(repository: Path) -> None:
    """A23.5"""
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "exclude").write_text("*.cache\n")
    (repository / ".gitignore").write_text("!keep.cache\n")
    assert left_out(repository, "a.cache", "keep.cache") == ["a.cache"]


def test_without_a_repository_nothing_above_counts(tmp_path: Path) -> None:
    make_folder(tmp_path, {".gitignore": "*.txt\n"})
    folder = make_folder(tmp_path / "folder", {"a.txt": ""})
    assert left_out(folder, "a.txt") == []


def test_rules_files_above_the_opened_folder_are_read_farthest_first(repository: Path) -> None:
    make_folder(repository, {"AGENTS.md": "top", "packages/CLAUDE.md": "between"})
    app = make_folder(repository / "packages" / "app", {"AGENTS.md": "here"})
    assert [(rules.path, rules.text) for rules in read_rules((app,))] == [
        ("../../AGENTS.md", "top"),
        ("../CLAUDE.md", "between"),
        ("AGENTS.md", "here"),
    ]


def test_rules_files_above_a_repository_are_not_read(repository: Path) -> None:
    (repository.parent / "AGENTS.md").write_text("not ours")
    assert read_rules((repository,)) == ()


@pytest.mark.parametrize("steady", [False, True])
def test_a_path_of_any_depth_is_judged(tmp_path: Path, steady: bool) -> None:
    folder = make_folder(tmp_path, {".gitignore": "*.txt\nhidden/\n"})
    deep = folder.joinpath(*["d"] * 1_500)
    listed = Ignores.of(folder, steady=steady).listed
    assert listed.hides(deep / "a.txt")
    assert listed.hides(folder / "hidden" / "e" / "f.py", folder=False)
    assert not listed.hides(deep / "a.py", folder=False)

"""Rules files of a project: those of roots for the system prompt, nested ones when work reaches their folder."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from daiku.domain.base import Frozen
from daiku.domain.held import RulesText
from daiku.texts.rules.truncate import truncate_middle

RULES_FILES = ("AGENTS.md", ".github/copilot-instructions.md", "CLAUDE.md")
NESTED_FILES = ("AGENTS.md", "CLAUDE.md")
RULES_LIMIT = 40_000
"""Maximum characters of one rules file; longer ones are cut in the middle."""
NESTED_LIMIT = 100_000
"""Maximum characters of all nested rules of a conversation together."""


class RulesFile(Frozen):
    path: str
    text: str


def read_rules(roots: tuple[Path, ...]) -> tuple[RulesFile, ...]:
    """Return the rules files from the repository's top down to the roots; equal texts of a root once."""
    files: list[RulesFile] = []
    for root in roots:
        texts: set[str] = set()
        for folder in (*reversed(_find_folders_above(root)), root):
            for name in RULES_FILES:
                path = os.path.relpath(folder / name, root).replace(os.sep, "/")
                path = f"{root.name}/{path}" if len(roots) > 1 else path
                text = _read_text(folder / name, folder, path)
                if text is not None and text not in texts:
                    texts.add(text)
                    files.append(RulesFile(path=path, text=text))
    return tuple(files)


def _find_folders_above(root: Path) -> list[Path]:
    """Return the folders above `root` that belong to its repository, the nearest first."""
    from daiku.workspace.repository import GitPlaces, find_git_places, may_be_repository  # when used

    if not may_be_repository(root):
        return []
    places = find_git_places(root, (root,), objects=False)
    if not isinstance(places, GitPlaces):
        return []
    return [folder for folder in root.resolve().parents if folder.is_relative_to(places.top)]


def read_nested_rules(
    place: Path,
    roots: tuple[Path, ...],
    sent: Mapping[str, RulesText],
    display_path: Callable[[Path], str],
    *,
    trusted: bool,
) -> tuple[RulesText, ...]:
    """Return the rules between `place` and its root that were not `sent` in their current form, nearest first.

    `display_path` names a path for the model.
    """
    root = next((r for r in roots if place.is_relative_to(r)), None)
    if root is None:
        return ()
    space_left = NESTED_LIMIT - sum(len(rules.text) for rules in sent.values())
    new_rules: list[RulesText] = []
    folder = place.parent
    while folder != root and folder.is_relative_to(root):
        seen_texts: set[str] = set()
        for name in NESTED_FILES:
            path = display_path(folder / name)
            text = _read_text(folder / name, root, path)
            if text is None or text in seen_texts:
                continue
            seen_texts.add(text)
            left_out = f"(Left out: together the rules would be too long. files__read {path} shows them.)"
            content = text if len(text) <= space_left else left_out
            space_left -= len(content)
            rules = RulesText(path=path, text=content, trusted=trusted)
            if sent.get(path) != rules:
                new_rules.append(rules)
        folder = folder.parent
    return tuple(new_rules)


def _read_text(path: Path, root: Path, name: str) -> str | None:
    try:
        if not path.is_file() or not path.resolve().is_relative_to(root.resolve()):
            return None
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return None
    return truncate_middle(text, RULES_LIMIT, f"files__read {name} shows it")

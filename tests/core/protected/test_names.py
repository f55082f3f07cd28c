"""The table of files that tools run by themselves, measured on names that were labelled by hand."""

from __future__ import annotations

import re
from itertools import filterfalse
from pathlib import Path

from check_jsonschema.catalog import SCHEMA_CATALOG

from daiku.guard.rules.policy import Policy
from daiku.guard.rules.protected.names import (
    CATEGORIES,
    explain_hidden,
    explain_protection,
    is_pipeline,
    needs_review,
)
from tests.cases import for_each
from tests.core.guard.test_unwatched import judged

FOLDER = Path(__file__).parent
MISSED = 0.01
"""Share of the implicit names that are neither asked about nor listed for the reviewer."""
UNASKED = 0.02
"""Share of the implicit names, those of ordinary work left out, that are not asked about."""
ALARMS = 0.01
"""Share of the ordinary names that are asked about."""


NOT_RUN = [
    "changie",
    "citation-file-format",
    "github-discussion",
    "github-issue-config",
    "github-issue-forms",
    "meltano",
]
"""Schemas of check-jsonschema's catalogue whose files nothing executes by itself."""


def _names(label: str) -> dict[str, list[str]]:
    """Return the labelled names by the heading that they stand under."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in (FOLDER / f"{label}_names.txt").read_text().splitlines():
        if line.startswith("#"):
            heading = line[2:]
        else:
            found.setdefault(heading, []).append(line)
    return found


IMPLICIT = _names("implicit")
ORDINARY = [name for names in _names("ordinary").values() for name in names]


def _is_asked(name: str) -> bool:
    return bool(explain_protection(name) or explain_hidden(name))


def test_the_miss_rate_is_bounded() -> None:
    names = [name for listed in IMPLICIT.values() for name in listed]
    assert len(names) >= 250
    missed = [name for name in names if not needs_review(name)]
    assert len(missed) <= MISSED * len(names), missed
    asked = [name for heading, listed in IMPLICIT.items() if "ordinary" not in heading for name in listed]
    unasked = [name for name in asked if not _is_asked(name)]
    assert len(unasked) <= UNASKED * len(asked), unasked


def test_the_false_alarm_rate_is_bounded() -> None:
    """A23.15: of names that were labelled by hand."""
    assert len(ORDINARY) >= 150
    alarms = [name for name in ORDINARY if _is_asked(name)]
    assert len(alarms) <= ALARMS * len(ORDINARY), alarms
    listed = [name for name in ORDINARY if needs_review(name)]
    assert len(listed) <= 2 * ALARMS * len(ORDINARY), listed


def test_a_work_item_changes_files_of_ordinary_work_by_any_path() -> None:
    """A23.15: a hidden folder above the item's copy counts for nothing."""
    policy = Policy(approval_mode="work", roots=("/home/u/.local/share/daiku/copy",))
    for name in filterfalse(_is_asked, ORDINARY):
        assert judged("files/write", policy, path=name, content="x").answer == "allow", name
    at = "/home/u/.local/share/daiku/copy/src/main.py"
    assert judged("files/write", policy, path=at, content="x").answer == "allow"


def test_files_of_ordinary_work_are_listed_and_not_asked_about() -> None:
    names = next(listed for heading, listed in IMPLICIT.items() if "ordinary" in heading)
    assert [name for name in names if _is_asked(name)] == []


def test_the_services_of_a_maintained_catalogue_are_known() -> None:
    """check-jsonschema keeps a list of the files of CI services, as patterns of pre-commit."""
    ours = [name for listed in IMPLICIT.values() for name in listed]
    kept = {name: entry for name, entry in SCHEMA_CATALOG.items() if "hook_config" in entry}
    unknown: list[str] = []
    for name, entry in kept.items():
        files = entry["hook_config"]["files"]
        patterns = files if isinstance(files, list) else [files]
        examples = [each for each in ours for pattern in patterns if re.search(pattern, each)]
        if not any(needs_review(each) for each in examples):
            unknown.append(name)
    assert sorted(unknown) == NOT_RUN


@for_each(
    "name",
    [
        ".cirrus.yml", ".teamcity/settings.kts", ".readthedocs.yaml", ".azuredevops/x.yml", ".github/settings.yml",
        "bitrise.yml", "render.yaml", "skaffold.yaml", "action.yml", "buildkite.yml", "codemagic.yaml", "buildspec.yml",
        "atlantis.yaml", "deploy/ci.jenkinsfile", "Procfile.dev", "Dangerfile", "config/deploy.yml", ".github/codeql/a.yml",
        ".rwx/ci.yml", ".atlantis.yaml", ".newservice/x.yml", ".newservice.yml", "sub/.newservice.yml",
    ],
)  # fmt: skip
def test_a_work_item_asks_before_it_changes_a_pipeline(name: str) -> None:
    """A23.10: also before a hidden file that no table knows."""
    assert is_pipeline(name)
    assert judged("files/write", Policy(approval_mode="work"), path=name, content="x").answer == "ask"


@for_each(
    "name",
    [".clangd", ".prettierrc.js", "settings.gradle", ".tmux.conf", ".pdbrc", "pytest.ini", ".newtool.toml"],
)
@for_each("mode", ["edits", "all"])
def test_a_file_that_runs_by_itself_is_asked_about(name: str, mode: str) -> None:
    """A23.15: also a hidden one that no table knows."""
    assert judged("files/write", Policy(approval_mode=mode), path=name, content="x").answer == "ask"  # pyright: ignore[reportArgumentType]  # of a list of modes


def test_each_pattern_stands_in_one_category() -> None:
    patterns = [pattern for category in CATEGORIES for pattern in category.patterns]
    assert sorted({each for each in patterns if patterns.count(each) > 1}) == []
    assert all(pattern == pattern.lower() for pattern in patterns)

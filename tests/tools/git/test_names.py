"""Names that are not plain ASCII: git tells them as they are, and either form of a letter finds the file."""

from __future__ import annotations

from pathlib import Path
from unicodedata import normalize

import pytest

from daiku.domain.config import SandboxSettings
from daiku.domain.errors import ToolValidationError
from daiku.tools.git.git import CommitArgs, DiffArgs, StatusArgs, commit, diff, status
from daiku.workspace.paths import locate
from tests.tools.git.test_git import git, repository
from tests.tools.shell.test_shell import context_of

pytestmark = pytest.mark.slow  # real git
__all__ = ["repository"]
NAMES = ["日本語.txt", "für/ä.txt", "app/[id]/page.tsx", normalize("NFD", "café.py")]


async def test_status_and_diff_tell_names_as_they_are(repository: Path) -> None:
    """C23.4: an octal code is no name that a model could give to a tool."""
    for name in NAMES:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("one\n")
    git(repository, "add", ".")
    context = context_of(repository, lambda _: None, SandboxSettings())
    told = (await status(StatusArgs(), context)).text
    shown = (await diff(DiffArgs(staged=True), context)).text
    assert [name for name in NAMES if name not in told or f"+++ b/{name}" not in shown] == []
    assert (await commit(CommitArgs(message="m", paths=("app/[id]/page.tsx",)), context)).ok


@pytest.mark.parametrize("on_disk", ["NFC", "NFD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
def test_either_form_of_a_letter_finds_the_file(tmp_path: Path, on_disk: str, asked: str) -> None:
    """C23.4: a model writes composed letters, and some systems keep decomposed ones."""
    place = tmp_path / normalize(on_disk, "é/café.py")  # type: ignore[arg-type]
    place.parent.mkdir()
    place.write_text("x")
    assert locate((tmp_path,), normalize(asked, "é/café.py")) == place  # type: ignore[arg-type]
    new = normalize(asked, "é/naïve.py")  # type: ignore[arg-type]
    assert locate((tmp_path,), new) == place.parent / Path(new).name


def test_two_files_of_the_same_letters_are_told_apart(tmp_path: Path) -> None:
    """C23.4: what is there under the very name is meant, and a link still leads out."""
    for form in ("NFC", "NFD"):
        (tmp_path / normalize(form, "é")).write_text(form)
    assert locate((tmp_path,), normalize("NFC", "é")).read_text() == "NFC"
    assert locate((tmp_path,), normalize("NFD", "é")).read_text() == "NFD"
    (tmp_path / normalize("NFD", "ö")).symlink_to("/etc")
    with pytest.raises(ToolValidationError):
        locate((tmp_path,), normalize("NFC", "ö/passwd"))

"""Whole outputs are reached by name, of their own session only, and through no link."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from daiku.workspace.outputs import MAX_AGE_DAYS, MAX_OUTPUTS, Outputs
from tests.cases import for_each


@pytest.fixture
def outputs(tmp_path: Path) -> Outputs:
    return Outputs(tmp_path / "outputs", lambda text: text.replace("hunter2!", "[redacted]"))


def test_an_output_is_read_back_by_its_name_without_secrets(outputs: Outputs, tmp_path: Path) -> None:
    name = outputs.keep("ses_1", "pytest -q tests", "one\r\ntwo hunter2!\n")
    assert name == "output:pytest-q"
    assert outputs.read("ses_1", name) == "one\r\ntwo [redacted]\n"
    assert outputs.keep("ses_1", "pytest -q other", "x") == "output:pytest-q-2"
    assert outputs.keep("ses_1", "npm-test-2", "y", again=True) == "output:npm-test-2"
    assert outputs.keep("ses_1", "npm-test-2", "z", again=True) == "output:npm-test-2"
    assert outputs.read("ses_1", "output:npm-test-2") == "z"
    file = tmp_path / "outputs/ses_1/pytest-q.txt"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


ESCAPES = (
    "output:../ses_2/secret", "output:../../private", "output:/etc/passwd", "output:..", "output:", "output:a/b",
    "output:pytest-q.txt", "output:PYTEST-Q", "output:a\0b", "output:%2e%2e", "pytest-q", "output:secret\n",
)  # fmt: skip


@for_each("path", ESCAPES)
def test_no_name_leads_out_of_the_folder(path: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    outputs = Outputs(tmp_path_factory.mktemp("home") / "outputs")
    outputs.keep("ses_2", "secret", "theirs")
    outputs.keep("ses_1", "pytest -q", "mine")
    assert outputs.read("ses_1", path) is None


def test_the_output_of_another_session_is_not_there(outputs: Outputs) -> None:
    name = outputs.keep("ses_2", "secret", "theirs")
    assert outputs.read("ses_1", name) is None
    for session in ("../ses_2", "ses_1/../ses_2", "", ".", "ses_2/"):
        assert outputs.read(session, name) is None
        assert outputs.keep(session, "x", "y") == ""


def test_links_in_the_folder_are_not_followed(outputs: Outputs, tmp_path: Path) -> None:
    private = tmp_path / "private.txt"
    private.write_text("a key")
    outputs.keep("ses_1", "mine", "text")
    folder = tmp_path / "outputs/ses_1"
    (folder / "link.txt").symlink_to(private)
    os.mkfifo(folder / "pipe.txt")
    (folder / "folder.txt").mkdir()
    for name in ("link", "pipe", "folder"):
        assert outputs.read("ses_1", f"output:{name}") is None
    assert outputs.keep("ses_1", "link", "new", again=True) == "output:link"
    assert private.read_text() == "a key", "a link is replaced, not written through"
    (tmp_path / "outputs/ses_3").symlink_to(tmp_path / "outputs/ses_1")
    assert outputs.read("ses_3", "output:mine") is None
    outputs.forget("ses_3")
    assert outputs.read("ses_1", "output:mine") == "text"


def test_a_session_keeps_the_newest_and_all_go_with_it_or_with_time(outputs: Outputs, tmp_path: Path) -> None:
    for number in range(MAX_OUTPUTS + 3):
        outputs.keep("ses_1", f"run {number}", str(number))
    assert len(list((tmp_path / "outputs/ses_1").iterdir())) == MAX_OUTPUTS
    outputs.keep("ses_2", "run", "x")
    outputs.forget("ses_2")
    assert outputs.read("ses_2", "output:run") is None
    old = time.time() - (MAX_AGE_DAYS + 1) * 86_400
    os.utime(tmp_path / "outputs/ses_1", (old, old))
    outputs.swept()
    assert not (tmp_path / "outputs/ses_1").exists()

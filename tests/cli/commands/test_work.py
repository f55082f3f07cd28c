"""`daiku work`: the items of the database, listed and shown, and what a person asks of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.domain.items.forge import FoundItem
from daiku.domain.items.item import ItemKey, ItemProgress
from daiku.domain.messages import Usage
from daiku.fronts.cli.commands.work import items as shown_items
from daiku.fronts.cli.display.term import Terminal, columns
from daiku.items.items import ItemStore
from daiku.items.record import Claim
from daiku.items.retrying import MOST_TRIES, explain_given_up, format_time_after
from daiku.settings import home
from daiku.texts.text import Text, text
from daiku.trace.stores import open_stores
from tests.cli.conftest import Daiku
from tests.conftest import ROOT

ISSUE = ItemKey(source="gitlab", kind="issue", repository="group/name", name="3")
FILE = ItemKey(source="files", kind="file", name="mend")
LONG = ItemKey(source="files", kind="file", name="long")


@pytest.fixture
def items(workspace: Path, daiku_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ItemStore]:
    """A queued issue and a file that a worker has."""
    monkeypatch.chdir(workspace)
    stores = open_stores(home(os.environ) / "daiku.db", str)
    store = ItemStore(stores.database)
    store.add(FoundItem(key=ISSUE, title="Add a discount", url="https://gitlab.com/group/name/-/issues/3"))
    store.add(FoundItem(key=FILE, title="Mend \x1b[31mthe test"))
    assert store.claim(str(FILE), "w") is not None
    yield store
    stores.close()


def test_they_are_listed_by_name_state_and_title_with_nothing_for_the_terminal_to_obey(
    daiku: Daiku, items: ItemStore
) -> None:
    done = daiku("work", "list")
    assert done.code == 0
    shown = sorted(" ".join(part for part in line.split()) for line in done.out.splitlines())
    assert [line.split()[0] for line in shown] == ["files:mend", "gitlab:group/name#3"]
    assert shown[0].endswith(r"processing Mend \x1b[31mthe test")
    assert shown[1].endswith("queued Add a discount")


def test_at_a_terminal_each_of_them_is_one_line(
    daiku: Daiku, items: ItemStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    items.add(FoundItem(key=LONG, title="とても長い題名 with a tail " * 10))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(shown_items, "terminal", lambda stream: Terminal(stream, live=True, colours=False))
    lines = daiku("work", "list").out.splitlines()
    assert len(lines) == 3
    assert [columns(line) in (79, 80) for line in lines if "…" in line] == [True]


def test_the_reason_of_an_items_state_is_listed(daiku: Daiku, items: ItemStore) -> None:
    """B23.14"""
    items.add(FoundItem(key=LONG, title="Label", refused=text("forge.untrusted", label="coding agent")))
    (line,) = (line for line in daiku("work", "list").out.splitlines() if line.startswith(str(LONG)))
    assert "stopped" in line
    assert "Label (The label “coding agent” was added by a bot or by someone without push access." in line


def test_one_that_waits_is_shown_with_how_to_answer(daiku: Daiku, items: ItemStore) -> None:
    record = items.record(str(FILE))
    assert record is not None
    items.change(Claim(str(FILE), record.fence), state="waiting")
    assert "  waits for: an answer: write it below the question" in daiku("work", "show", str(FILE)).out
    assert "waits for" not in daiku("work", "show", str(ISSUE)).out


def test_as_json_the_list_is_one_list_of_items_in_camel_case(daiku: Daiku, items: ItemStore) -> None:
    (item,) = json.loads(daiku("work", "list", "--state", "queued", "--json").out)
    expected = {
        "item": "gitlab:group/name#3",
        "title": "Add a discount",
        "url": "https://gitlab.com/group/name/-/issues/3",
        "state": "queued",
        "sessionId": "",
        "branch": "",
        "requestUrl": "",
        "attempts": 0,
        "wanted": "",
        "progress": None,
        "usage": None,
        "error": "",
    }
    assert {name: value for name, value in item.items() if not name.endswith("At")} == expected
    assert set(item) - set(expected) == {"createdAt", "updatedAt"}


def test_without_items_the_list_is_empty(daiku: Daiku, workspace: Path, daiku_home: Path) -> None:
    assert daiku("work", "list", "-C", str(workspace)).out == "There are none yet.\n"
    assert json.loads(daiku("work", "list", "-C", str(workspace), "--json").out) == []


def test_one_is_shown_with_what_is_known_of_it(daiku: Daiku, items: ItemStore) -> None:
    shown = daiku("work", "show", "gitlab:group/name#3").out
    assert "queued      Add a discount" in shown
    assert "  address: https://gitlab.com/group/name/-/issues/3\n" in shown
    assert "branch" not in shown
    assert json.loads(daiku("work", "show", str(FILE), "--json").out)["attempts"] == 1


def test_one_is_paused_resumed_cancelled_and_tried_again(daiku: Daiku, items: ItemStore) -> None:
    steps = [("pause", "paused"), ("resume", "queued"), ("cancel", "stopped"), ("retry", "queued")]
    for wanted, state in steps:
        done = daiku("work", wanted, str(ISSUE), "--json")
        assert (done.code, json.loads(done.out)["state"]) == (0, state)
    assert " queued " in daiku("work", "show", str(ISSUE)).out
    daiku("work", "cancel", str(ISSUE))
    assert "why: Cancelled by a person." in daiku("work", "show", str(ISSUE)).out


def test_one_that_was_given_up_is_listed_shown_with_its_reason_and_tried_again(
    daiku: Daiku, items: ItemStore
) -> None:
    """B23.4"""
    claim = items.claim(str(FILE), "w", only=("processing",))
    assert claim is not None
    items.note(claim, tries=MOST_TRIES)
    items.change(
        claim, state="dead", error=explain_given_up(Text("no answer")), next_at=format_time_after(60)
    )
    assert [each["item"] for each in json.loads(daiku("work", "list", "--state", "dead", "--json").out)] == [
        str(FILE)
    ]
    assert f"Given up after {MOST_TRIES} tries: no answer" in daiku("work", "show", str(FILE)).out
    assert items.first_queued(9)[0].item == str(ISSUE)
    assert "queued" in daiku("work", "retry", str(FILE)).out
    assert str(FILE) in [each.item for each in items.first_queued(9)]
    record = items.record(str(FILE))
    assert record is not None
    assert (record.facts.tries, record.shown.error) == (0, "")


def test_what_is_asked_of_an_item_at_work_is_left_for_whoever_works_it(
    daiku: Daiku, items: ItemStore
) -> None:
    done = daiku("work", "pause", str(FILE))
    assert done.out == "files:mend: pause is asked for and takes effect at its next step.\n"
    record = items.record(str(FILE))
    assert record is not None
    assert (record.shown.state, record.wanted) == ("processing", "pause")
    items.change(Claim(str(FILE), record.fence), progress=ItemProgress(done=1, total=3, step="Count"))
    shown = daiku("work", "show", str(FILE)).out
    assert "  asked for: pause\n" in shown
    assert "  steps done: 1/3 Count\n" in shown


def test_what_its_runs_used_so_far_is_shown_as_in_the_comment_of_progress(
    daiku: Daiku, items: ItemStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "used so far" not in daiku("work", "show", str(FILE)).out
    record = items.record(str(FILE))
    assert record is not None
    claim = Claim(str(FILE), record.fence)
    items.change(claim, usage=Usage(prompt_tokens=12_000, completion_tokens=345))
    assert "  used so far: 12,345 tokens\n" in daiku("work", "show", str(FILE)).out
    items.change(claim, usage=Usage(prompt_tokens=12_000, completion_tokens=345, cost=0.256))
    assert "  used so far: 12,345 tokens, $0.26\n" in daiku("work", "show", str(FILE)).out
    assert json.loads(daiku("work", "show", str(FILE), "--json").out)["usage"]["cost"] == 0.256
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "  これまでの使用量: 12,345 トークン、$0.26\n" in daiku("work", "show", str(FILE)).out


def test_it_speaks_the_persons_language(
    daiku: Daiku, items: ItemStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    daiku("work", "cancel", str(ISSUE))
    monkeypatch.setenv("LC_ALL", "ja_JP.UTF-8")
    assert "理由: 人が取り消しました。" in daiku("work", "show", str(ISSUE)).out
    assert "やり直せるのは" in daiku("work", "retry", str(FILE)).err


@pytest.mark.parametrize("command", ["show", "pause", "resume", "cancel", "retry"])
@pytest.mark.parametrize(
    ("item", "told"),
    [
        ("gitlab:3", "not the name of a work item. See daiku work list. Items are named like"),
        (
            "gitlab:group/name#4",
            "There is no work item gitlab:group/name#4. Did you mean gitlab:group/name#3",
        ),
    ],
)
def test_what_names_no_item_is_one_line_that_says_what_does(
    daiku: Daiku, items: ItemStore, command: str, item: str, told: str
) -> None:
    done = daiku("work", command, item, "--json")
    assert (done.code, [chunk["type"] for chunk in done.chunks()]) == (2, ["error"])
    assert told in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "wrong",
    [("list", "--state", "asleep"), ("show",), ("resume", str(ISSUE)), ("pause", str(ISSUE), "-C", "/0")],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    daiku: Daiku, items: ItemStore, wrong: tuple[str, ...]
) -> None:
    done = daiku("work", *wrong)
    assert done.code == 2
    assert done.err.count("\n") == 1


@pytest.mark.slow
def test_as_a_process_with_nobody_there_it_reads_and_asks_the_same(items: ItemStore, workspace: Path) -> None:
    def process(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "daiku", "work", *args],
            cwd=workspace,
            env={**os.environ, "PYTHONPATH": str(ROOT / "server")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    paused = process("pause", str(ISSUE), "--json")
    assert (paused.returncode, paused.stderr) == (0, "")
    assert items.find(str(ISSUE)).state == "paused", "the store that was open all the time sees it"
    listed = json.loads(process("list", "--state", "paused", "--json").stdout)
    assert [item["item"] for item in listed] == [str(ISSUE)]
    assert process("show", "nonsense").returncode == 2

"""The difference that a change of the playbook makes, as lines."""

from __future__ import annotations

from typing import Any

from daiku.domain.playbook import Bullet, Delta
from daiku.playbook.rules.shown import list_touched_ids, render_diff
from tests.cases import for_each

OLD = Bullet(id="pc-00001", section="a", content="one\ntwo\nthree", keywords=("k",))
OTHER = Bullet(id="pc-00002", section="a", content="other")
NOW = {each.id: each for each in (OLD, OTHER)}


def delta(**fields: Any) -> Delta:
    return Delta.model_validate({"id": "r1", "bullet_id": "pc-00001", **fields})


@for_each(
    ("fields", "shown"),
    [
        ({"type": "add", "bullet_id": "", "section": "s", "content": "x\ny"}, "@@ s @@\n+x\n+y\n"),
        (
            {"type": "update", "content": "one\n2\nthree"},
            "@@ pc-00001 @@\n one\n-two\n+2\n three\n Keywords: k\n",
        ),
        (
            {"type": "update", "keywords": ("k", "l")},
            "@@ pc-00001 @@\n one\n two\n three\n-Keywords: k\n+Keywords: k, l\n",
        ),
        ({"type": "remove"}, "@@ pc-00001 @@\n-one\n-two\n-three\n-Keywords: k\n"),
        (
            {"type": "merge", "bullet_ids": ("pc-00002",), "content": "one"},
            "@@ pc-00001 @@\n one\n-two\n-three\n Keywords: k\n@@ pc-00002 @@\n-other\n",
        ),
        ({"type": "tag", "tag": "helpful"}, ""),
        ({"type": "restore"}, ""),
        ({"type": "update", "bullet_id": "pc-00009", "content": "x"}, ""),
    ],
)
def test_a_proposed_change_shows_what_it_would_do_now(fields: dict[str, Any], shown: str) -> None:
    assert render_diff(delta(**fields), NOW, "en") == shown


def test_keywords_are_labelled_in_the_persons_language() -> None:
    wanted = delta(type="update", keywords=("k", "l"))
    shown = "@@ pc-00001 @@\n one\n two\n three\n-キーワード: k\n+キーワード: k, l\n"
    assert render_diff(wanted, NOW, "ja") == shown


def test_a_disabled_bullet_would_come_back_whole() -> None:
    off = OLD.model_copy(update={"active": False, "keywords": ()})
    assert render_diff(delta(type="restore"), {OLD.id: off}, "en") == "@@ pc-00001 @@\n+one\n+two\n+three\n"


@for_each("status", ["applied", "undone"])
def test_a_change_that_was_made_shows_what_it_did_then(status: str) -> None:
    after = OTHER.model_copy(update={"content": "another"})
    made = delta(type="update", bullet_id="pc-00002", status=status, before=(OTHER,), after=(after,))
    assert render_diff(made, {}, "en") == "@@ pc-00002 @@\n-other\n+another\n"


def test_the_bullets_of_a_change_are_named_once_and_none_of_what_is_only_to_be_added() -> None:
    merged = delta(type="merge", bullet_ids=("pc-00002", "pc-00001"), before=(OLD,))
    assert list_touched_ids(merged) == ("pc-00001", "pc-00002")
    assert list_touched_ids(delta(type="add", after=(OLD,))) == ()

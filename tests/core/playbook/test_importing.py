"""The ids under which bullets of a text come into a playbook."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.playbook import Bullet, PlaybookScope
from daiku.playbook.files import assign_ids
from daiku.playbook.rules.sections import parse_bullet_id

_IDS = st.sampled_from(
    ["", "pc-00001", "pc-00002", "pc-00003", "pc-00009", "err-00001", "mypc-00001", "X", "pc-1", "pc-00000"]
)


def bullets(*ids: str) -> list[Bullet]:
    return [Bullet(id=each, section="project conventions", content="x") for each in ids]


def ids(*given: str, scope: PlaybookScope = "repository", taken: tuple[str, ...] = ()) -> list[str]:
    return [each.id for each in assign_ids(bullets(*given), scope, taken.__contains__)]


def test_an_id_that_is_free_is_kept() -> None:
    assert ids("pc-00007", "err-00002") == ["pc-00007", "err-00002"]


def test_an_id_that_stands_twice_gets_a_number_that_takes_none_of_the_others() -> None:
    """R3.31."""
    assert ids("pc-00001", "pc-00001", "pc-00002") == ["pc-00001", "pc-00003", "pc-00002"]


def test_an_id_that_the_playbook_has_gets_a_new_one() -> None:
    assert ids("pc-00001", taken=("pc-00001", "pc-00002")) == ["pc-00003"]


def test_what_is_no_id_of_this_playbook_gets_one_by_its_section() -> None:
    assert ids("", "STR_1", "mypc-00001") == ["pc-00001", "pc-00002", "pc-00003"]
    assert ids("pc-00001", "mypc-00001", scope="user") == ["mypc-00002", "mypc-00001"]


@given(st.lists(_IDS), st.sets(_IDS), st.sampled_from(["repository", "user"]))
def test_every_bullet_gets_an_id_of_its_own_and_a_free_one_stays(
    given: list[str], taken: set[str], scope: PlaybookScope
) -> None:
    found = ids(*given, scope=scope, taken=tuple(taken))
    assert len(set(found)) == len(given)
    assert not set(found) & taken
    for was, now in zip(given, found, strict=True):
        assert parse_bullet_id(now, scope) is not None
        if parse_bullet_id(was, scope) is not None and was not in taken and given.count(was) == 1:
            assert now == was

"""What an attempt may want item: its own branch and bounded words, whatever runs in its process."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from daiku.domain.items.forge import ForgeRefusal, FoundItem, ItemNews, ItemText
from daiku.domain.items.item import (
    ForgeIntent,
    Intent,
    ItemKey,
    MarkReady,
    OpenRequest,
    Outcome,
    PostComment,
    PushBranch,
    ShowProgress,
    SourceName,
)
from daiku.items.applying import MOST_CHARACTERS, MOST_COMMENTS, apply_open
from daiku.items.items import ItemStore
from daiku.items.kept.pushing import ItemCheckout
from daiku.items.parts import ClaimedItem
from daiku.items.record import ClaimLost
from daiku.items.source import Check, CloneAccess, ItemSource, no_check
from daiku.store.sqlite import connect
from tests.work.parts import parts_of

KEY = ItemKey(source="files", kind="file", name="mend")
COMMIT = "1" * 40
TEXT = ItemText(key=KEY, title="t", body="b", author="ann", default="main", base="release", body_trusted=True)


class Heard(ItemSource):
    """A source that carries out everything, and keeps what that was."""

    def __init__(self) -> None:
        self.done: list[ForgeIntent] = []
        self.before: Callable[[], object] = bool

    @property
    def name(self) -> SourceName:
        return "files"

    def takes(self, key: ItemKey) -> bool:
        return True

    async def find(self) -> tuple[FoundItem, ...]:
        return ()

    async def read(self, key: ItemKey) -> ItemText:
        return TEXT

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews:
        return ItemNews(wanted=True)

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = no_check
    ) -> Outcome:
        self.before()
        check()
        self.done.append(intent)
        return Outcome(reference="1")

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess | ForgeRefusal:
        raise NotImplementedError

    async def aclose(self) -> None:
        pass


@pytest.fixture
def item() -> ClaimedItem:
    items = ItemStore(connect(None, ""))
    items.add(FoundItem(key=KEY, title="t", labelled_at="1"))
    claim = items.claim(str(KEY), "worker-1")
    assert claim is not None
    items.change(claim, claim=TEXT, branch="daiku/mend")
    never_used = cast("ItemCheckout", object())  # what is refused never comes to its repository
    return ClaimedItem(parts_of(items, {}), Heard(), claim, never_used)


def heard(item: ClaimedItem) -> list[ForgeIntent]:
    assert isinstance(item.source, Heard)
    return item.source.done


@pytest.mark.parametrize(
    "intent",
    [
        PushBranch(branch="main", commit=COMMIT),
        PushBranch(branch="release", commit=COMMIT),
        PushBranch(branch="daiku/other", commit=COMMIT),
        OpenRequest(branch="daiku/mend", base="main", title="t", text="b"),
        OpenRequest(branch="main", base="release", title="t", text="b"),
        OpenRequest(branch="daiku/mend", base="release", title="t", text="b" * MOST_CHARACTERS),
        MarkReady(branch="main"),
        MarkReady(branch="daiku/other"),
        PostComment(text="x" * (MOST_CHARACTERS + 1)),
        ShowProgress(text="x" * (MOST_CHARACTERS + 1)),
    ],
)
async def test_what_is_not_the_items_is_refused_before_any_call(item: ClaimedItem, intent: Intent) -> None:
    """R2.41, R2.46: one branch, never the default one; one request, into the branch that it was begun from."""
    operation = f"evil-{id(intent)}"
    item.want(operation, intent)
    await apply_open(item)
    kept = item.parts.intents.find(str(KEY), operation)
    assert kept is not None
    assert kept.status == "refused"
    assert kept.error
    assert heard(item) == []


async def test_a_branch_that_was_named_like_the_default_one_is_not_pushed(item: ClaimedItem) -> None:
    """R2.46: also where the item's own branch was taken for another."""
    for branch in (TEXT.default, TEXT.base):
        item.parts.items.change(item.claim, branch=branch)
        item.want(f"push-{branch}", PushBranch(branch=branch, commit=COMMIT))
        await apply_open(item)
        kept = item.parts.intents.find(str(KEY), f"push-{branch}")
        assert kept is not None
        assert kept.status == "refused"


async def test_its_own_request_and_words_go_out(item: ClaimedItem) -> None:
    wanted = (
        PostComment(text="x" * MOST_CHARACTERS),
        OpenRequest(branch="daiku/mend", base="release", title="t", text="b"),
        MarkReady(branch="daiku/mend"),
    )
    for number, intent in enumerate(wanted):
        item.want(str(number), intent)
    assert await apply_open(item) == (None, {})
    assert heard(item) == list(wanted)
    assert item.parts.intents.list_open(str(KEY)) == ()


async def test_an_item_that_would_talk_without_end_falls_silent(item: ClaimedItem) -> None:
    """R2.40, R2.45: an item posts so many comments and no more."""
    for number in range(MOST_COMMENTS + 5):
        item.want(f"comment-{number}", PostComment(text=f"comment {number}"))
    await apply_open(item)
    assert len(heard(item)) == MOST_COMMENTS
    assert item.parts.intents.list_open(str(KEY)) == ()


async def test_a_worker_that_stood_still_before_its_call_does_not_make_it(item: ClaimedItem) -> None:
    """R2.40: stopped between the intent on record and the request, it finds on waking that the item is somebody else's."""
    source = item.source
    assert isinstance(source, Heard)
    source.before = lambda: item.parts.items.claim(str(KEY), "worker-2", only=("processing",))
    item.want("hello", PostComment(text="Hello."))
    with pytest.raises(ClaimLost):
        await apply_open(item)
    assert heard(item) == []
    kept = item.parts.intents.find(str(KEY), "hello")
    assert kept is not None
    assert kept.status == "sent"  # whoever has the item now looks for its traces

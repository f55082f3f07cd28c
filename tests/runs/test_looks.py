"""Lookups that runs share: as few as possible, none that began too early, none without a waiting caller."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from daiku.run.starting import SharedLookups


@dataclass
class Folder:
    """What is looked at: a look tells the state when it began, once it may end."""

    state: str = "clean"
    looks: int = 0
    under_way: int = 0
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def look(self) -> str:
        self.looks += 1
        self.under_way += 1
        found = self.state
        try:
            await self.may_end.wait()
        finally:
            self.under_way -= 1
        return found


async def begun() -> None:
    """Until what was started waits for something."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_hundred_that_ask_at_once_share_one_look() -> None:
    looks, folder = SharedLookups(), Folder()
    folder.may_end.set()
    found = await asyncio.gather(*(looks("x", folder.look) for _ in range(100)))
    assert set(found) == {"clean"}
    assert folder.looks == 1


async def test_who_asks_while_a_look_is_under_way_is_told_what_holds_now() -> None:
    """The one under way began before the change."""
    looks, folder = SharedLookups(), Folder()
    early = asyncio.create_task(looks("x", folder.look))
    await begun()
    folder.state = "changed"
    late = [asyncio.create_task(looks("x", folder.look)) for _ in range(10)]
    await begun()
    assert folder.under_way == 1
    folder.may_end.set()
    assert await early == "clean"
    assert set(await asyncio.gather(*late)) == {"changed"}
    assert folder.looks == 2


async def test_different_things_are_looked_at_side_by_side() -> None:
    looks, one, other = SharedLookups(), Folder(), Folder("other")
    tasks = [asyncio.create_task(looks(name, each.look)) for name, each in (("x", one), ("y", other))]
    await begun()
    assert (one.under_way, other.under_way) == (1, 1)
    one.may_end.set()
    other.may_end.set()
    assert await asyncio.gather(*tasks) == ["clean", "other"]


async def test_a_look_goes_on_for_those_who_still_wait_and_ends_with_the_last() -> None:
    looks, folder = SharedLookups(), Folder()
    tasks = [asyncio.create_task(looks("x", folder.look)) for _ in range(2)]
    await begun()
    tasks[0].cancel()
    await begun()
    assert folder.under_way == 1
    tasks[1].cancel()
    await begun()
    assert folder.under_way == 0
    folder.may_end.set()
    assert await looks("x", folder.look) == "clean"


async def test_who_gives_up_before_the_next_look_begins_leaves_nothing_behind() -> None:
    looks, folder = SharedLookups(), Folder()
    first = asyncio.create_task(looks("x", folder.look))
    await begun()
    second = asyncio.create_task(looks("x", folder.look))
    await begun()
    second.cancel()
    await begun()
    folder.may_end.set()
    assert await first == "clean"
    assert await looks("x", folder.look) == "clean"
    assert folder.looks == 2

"""Work items over the wire: listed, and one of them named."""

from __future__ import annotations

from daiku.api.base import Id
from daiku.domain.base import Localizable, Wire
from daiku.domain.items.item import ItemState, WorkItem


class WorkListParams(Wire):
    """Without a state all of them."""

    state: ItemState | None = None


class WorkListResult(Localizable):
    """Last changed first."""

    items: tuple[WorkItem, ...]


class WorkWatchParams(Wire):
    """`revision`: the one that came with the items that the client has; empty where it has none."""

    revision: str = ""


class WorkWatchResult(Localizable):
    """The items as they are now, last changed first."""

    revision: str
    items: tuple[WorkItem, ...]


class WorkPlace(Localizable):
    """An item that nobody works now, and the folder in which its files are: empty where that is not on this machine.
    An item that is still `processing` pauses at its next step."""

    item: WorkItem
    folder: str


class WorkItemRef(Wire):
    """`item` is named like `gitlab:group/name#3` or `files:name`."""

    item: Id

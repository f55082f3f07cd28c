"""News about an item: whether it is still wanted, new comments, and the checks of its request."""

from __future__ import annotations

from daiku.domain.items.forge import ForgeRefusal, ItemNews, Said
from daiku.domain.items.item import ItemKey
from daiku.items.answers import parse_time
from daiku.items.forge.reading import read_comments
from daiku.items.forge.repository import ForgeRepository
from daiku.items.forge.shapes import ForgeItem
from daiku.items.labels import list_own_labels
from daiku.texts.text import NO_TEXT, Text, text


async def read_news(
    repository: ForgeRepository, key: ItemKey, after: str, head: str
) -> ItemNews | ForgeRefusal:
    """Return the changes since `after`. `head` is the commit whose checks are read (empty: none)."""
    item = await repository.item(key)
    if isinstance(item, ForgeRefusal):
        missing = ItemNews(wanted=False, why=text("forge.gone", item=str(key)))
        return missing if item.kind == "gone" else item
    request: ForgeItem | ForgeRefusal | None = item if key.kind == "request" else None
    if head and request is None:
        request = await repository.find_own_request(key, head)
        if isinstance(request, ForgeRefusal):
            return request
    comments = await _read_new_comments(repository, key, request, after)
    if isinstance(comments, ForgeRefusal):
        return comments
    checks = await repository.checks(head, request) if head else ("none", ())
    if isinstance(checks, ForgeRefusal):
        return checks
    why = _explain_unwanted(repository, key, item)
    merged = request is not None and request.is_merged
    return ItemNews.model_validate(
        {
            "wanted": not why,
            "why": why,
            "said": comments,
            "checks": checks[0],
            "failed": checks[1],
            "merged": merged,
            "closed": request is not None and key.kind == "issue" and not request.is_open and not merged,
        }
    )


async def _read_new_comments(
    repository: ForgeRepository, key: ItemKey, request: ForgeItem | None, after: str
) -> tuple[Said, ...] | ForgeRefusal:
    """Return the new comments on the item and on the request that Daiku opened for it."""
    new_comments: list[Said] = []
    places = [key] if request is None or key.kind == "request" else [key, repository.build_key(request)]
    for place in places:
        comments = await repository.comments(place, after)
        if isinstance(comments, ForgeRefusal):
            return comments
        result = await read_comments(repository, comments, fresh=True)
        if isinstance(result, ForgeRefusal):
            return result
        new_comments += result[0]
    return tuple(sorted(new_comments, key=lambda comment: parse_time(comment.time)))


def _explain_unwanted(repository: ForgeRepository, key: ItemKey, item: ForgeItem) -> Text:
    bot = repository.account.bot
    if item.moved_to_id is not None:
        return text("forge.moved", item=str(key))
    if not item.is_open:
        return text("forge.closed", item=str(key))
    if repository.is_own_request(item):
        return NO_TEXT
    if not repository.has_label(item, *list_own_labels(repository.account.labels)):
        return text("forge.unlabelled", item=str(key))
    if bot and not item.is_assigned_to(bot):
        return text("forge.unassigned", item=str(key), name=bot)
    return NO_TEXT

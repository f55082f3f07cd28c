"""Read an item: its text, trusted comments, and why it cannot be processed; news about it since then."""

from __future__ import annotations

from daiku.domain.items.forge import ForgeRefusal, ItemNews, ItemText, Said
from daiku.domain.items.item import ItemKey
from daiku.items.forge.repository import ForgeRepository
from daiku.items.forge.shapes import Comment, ForgeItem, Project
from daiku.items.labels import list_own_labels
from daiku.items.rules.assent import explain_missing_instructions, select_comments
from daiku.items.source import build_refusal, parse_time
from daiku.texts.text import NO_TEXT, Text, text

MAX_BODY = 200_000
"""Maximum characters of an item's text."""


async def read_item(repository: ForgeRepository, key: ItemKey) -> ItemText | ForgeRefusal:
    """Read the item. Return a refusal if it cannot be processed."""
    project = await repository.calls.get(Project, "")
    if isinstance(project, ForgeRefusal):
        return project
    item = await repository.item(key)
    if isinstance(item, ForgeRefusal):
        return build_refusal("gone", text("forge.gone", item=str(key))) if item.kind == "gone" else item
    if why := _refuse_unusable(repository, key, item, project):
        return why
    head = await repository.find_head_repository(item, key, project)
    if isinstance(head, ForgeRefusal):
        return head
    comments = await repository.comments(key, "")
    if isinstance(comments, ForgeRefusal):
        return comments
    trusted = repository.is_own_request(item) or await repository.is_body_trusted(item, comments)
    if isinstance(trusted, ForgeRefusal):
        return trusted
    result = await read_comments(repository, comments, fresh=False)
    if isinstance(result, ForgeRefusal):
        return result
    said_comments, hidden_said = result
    body, hidden = repository.account.strip(item.body or "")
    match explain_missing_instructions(body, trusted, said_comments):
        case "empty":
            return build_refusal("empty", text("forge.empty", item=str(key)))
        case "untrusted":
            return build_refusal("untrusted", text("forge.edited", item=str(key)))
        case None:
            pass
    return ItemText(
        key=key,
        title=item.title,
        body=body,
        author=item.author.login if item.author else "",
        url=item.url,
        body_trusted=trusted,
        comments=select_comments(said_comments),
        hidden=hidden or hidden_said,
        clone_url=project.clone_url,
        default=project.default_branch or "",
        base=item.target_branch or project.default_branch or "",
        head=item.source_branch,
        head_commit=(item.sha or "") if item.source_branch else "",
        head_repository=head,
        claimed_at=repository.claimed_at(item, comments),
    )


def _refuse_unusable(
    repository: ForgeRepository, key: ItemKey, item: ForgeItem, project: Project
) -> ForgeRefusal | None:
    name = repository.calls.repository
    if item.moved_to_id is not None or project.full_name.casefold() != name.casefold():
        return build_refusal("moved", text("forge.moved", item=str(key)))
    if project.archived:
        return build_refusal("archived", text("forge.archived", name=name))
    if not item.is_open:
        return build_refusal("closed", text("forge.closed", item=str(key)))
    if item.locked:
        return build_refusal("locked", text("forge.locked", item=str(key)))
    if len(item.body or "") > MAX_BODY:
        return build_refusal("too_large", text("forge.too_large", item=str(key), most=MAX_BODY))
    return None


async def read_comments(
    repository: ForgeRepository, comments: tuple[Comment, ...], *, fresh: bool
) -> tuple[tuple[Said, ...], bool] | ForgeRefusal:
    """Return people's comments, oldest first, and whether one had hidden text.

    `fresh`: written since the claim.
    """
    rows = [
        row for row in comments if (row.body or "").strip() and not row.system and not repository.is_ours(row)
    ]
    trusted: set[Comment] = set()
    for row in rows:
        writes = await repository.can_write(row.author)
        if isinstance(writes, ForgeRefusal):
            return writes
        if writes:
            trusted.add(row)
    edited = await repository.find_edited(tuple(trusted), fresh=fresh) if trusted else frozenset[Comment]()
    if isinstance(edited, ForgeRefusal):
        return edited
    stripped = [(row, *repository.account.strip(row.body or "")) for row in rows]
    result = [_to_said(row, words, row in trusted - edited) for row, words, _ in stripped]
    return tuple(sorted(result, key=lambda comment: parse_time(comment.time))), any(
        hidden for *_, hidden in stripped
    )


def _to_said(row: Comment, body: str, trusted: bool) -> Said:
    return Said(
        id=f"{row.kind}{row.id}",
        author=row.author.login if row.author else "",
        text=body,
        time=row.time,
        trusted=trusted,
        path=row.path or row.old_path or "",
        line=row.line or row.old_line or 0,
    )


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

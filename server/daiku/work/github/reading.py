"""An item as it stands: its text, who is believed in it, and why it cannot be worked."""

from __future__ import annotations

from daiku.core.work.instructions import within_room, without_instructions
from daiku.core.work.marks import OURS
from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal, ItemText, Said
from daiku.domain.items.item import ItemKey
from daiku.texts.text import text
from daiku.work.answers import moment, refused
from daiku.work.github.calls import Calls
from daiku.work.github.shapes import Comment, Issue, Pull, Repository, Review, User
from daiku.work.github.trust import Believed, edited_by_others, last_labelling
from daiku.work.source import Strip

MAX_CHARACTERS = 1_000_000
"""Of an item's text: more is refused as too large."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who we are on GitHub: `bot` is the login that is assigned, `us` the one that we write as; `strip` takes out of a
    text what a person does not see."""

    bot: str
    us: str
    strip: Strip

    def is_ours(self, user: User | None, body: str) -> bool:
        """Return True if Daiku wrote it (C2.13). If the token is a user's, only comments with our mark are ours."""
        if OURS in body:
            return True
        return user is not None and any(
            user.is_called(name) for name in (self.bot, self.us if self.us.endswith("[bot]") else "")
        )


async def read_item(calls: Calls, key: ItemKey, label: str, account: Account) -> ItemText | ForgeRefusal:
    """Read the item as it is now. Return a refusal if it cannot be processed."""
    repository = await calls.get(Repository, calls.root)
    if isinstance(repository, ForgeRefusal):
        return repository
    if why := await _closed_to_us(calls, repository):
        return why
    issue = await calls.get(Issue, f"{calls.root}/issues/{key.name}")
    if isinstance(issue, ForgeRefusal):
        return issue
    if why := _not_workable(issue):
        return why
    pull: Pull | ForgeRefusal | None = None
    if key.kind == "request":
        pull = await calls.get(Pull, f"{calls.root}/pulls/{key.name}")
        if isinstance(pull, ForgeRefusal):
            return pull
        if pull.head.repo is None:
            return refused("moved", text("github.no_head"))
    believed = Believed(calls)
    trusted = await _body_trusted(calls, issue, label, believed, account)
    if isinstance(trusted, ForgeRefusal):
        return trusted
    said = await said_since(calls, key, believed, account, "")
    if isinstance(said, ForgeRefusal):
        return said
    body, hidden = account.strip(issue.body or "")
    match without_instructions(body, trusted, said):
        case "empty":
            return refused("empty", text("github.empty"))
        case "untrusted":
            return refused("untrusted", text("github.edited"))
        case None:
            return _as_text(
                key, repository, issue, pull, body, trusted, within_room(said), hidden, calls.time
            )


def _as_text(
    key: ItemKey,
    repository: Repository,
    issue: Issue,
    pull: Pull | None,
    body: str,
    trusted: bool,
    said: tuple[Said, ...],
    hidden: bool,
    time: str,
) -> ItemText:
    head = pull.head if pull is not None else None
    lies = head.repo.full_name if head is not None and head.repo is not None else ""
    return ItemText(
        key=key,
        title=issue.title,
        body=body,
        author=issue.user.login if issue.user is not None else "",
        url=issue.html_url,
        body_trusted=trusted,
        comments=said,
        hidden=hidden,
        clone_url=repository.clone_url,
        default=repository.default_branch,
        base=pull.base.ref if pull is not None else repository.default_branch,
        head=head.ref if head is not None else "",
        head_commit=head.sha if head is not None else "",
        head_repository="" if lies.casefold() == repository.full_name.casefold() else lies,
        claimed_at=time,
    )


async def said_since(
    calls: Calls, key: ItemKey, believed: Believed, account: Account, after: str
) -> tuple[Said, ...] | ForgeRefusal:
    """Return what people wrote from `after` on (empty: ever), oldest first. Nothing is asked of our own comments."""
    all_rows = await _rows(calls, key, after)
    if isinstance(all_rows, ForgeRefusal):
        return all_rows
    rows = [
        (kind, row)
        for kind, row in all_rows
        if (row.body or "").strip()
        and not account.is_ours(row.user, row.body or "")
        and (not after or moment(_time_of(row)) >= moment(after))
    ]
    writers: set[str] = set()
    edited: list[Comment | Review] = []
    for kind, row in rows:
        writes = await believed.writes(row.user)
        if isinstance(writes, ForgeRefusal):
            return writes
        if writes:
            writers.add(f"{kind}{row.id}")
            if isinstance(row, Review) or row.updated_at != row.created_at:
                edited.append(row)
    changed = await edited_by_others(calls, tuple(edited)) if edited else frozenset[str]()
    if isinstance(changed, ForgeRefusal):
        return changed
    said = [
        _as_said(kind, row, f"{kind}{row.id}" in writers and row.node_id not in changed, account)
        for kind, row in rows
    ]
    return tuple(sorted(said, key=lambda each: moment(each.time)))


def _time_of(row: Comment | Review) -> str:
    return (row.created_at if isinstance(row, Comment) else row.submitted_at) or ""


async def _rows(
    calls: Calls, key: ItemKey, after: str
) -> tuple[tuple[str, Comment | Review], ...] | ForgeRefusal:
    since = f"?since={after}" if after else ""
    comments = await calls.pages(Comment, f"{calls.root}/issues/{key.name}/comments{since}")
    if isinstance(comments, ForgeRefusal):
        return comments
    found: list[tuple[str, Comment | Review]] = [("comment-", row) for row in comments]
    if key.kind == "request":
        lines = await calls.pages(Comment, f"{calls.root}/pulls/{key.name}/comments{since}")
        if isinstance(lines, ForgeRefusal):
            return lines
        reviews = await calls.pages(Review, f"{calls.root}/pulls/{key.name}/reviews")
        if isinstance(reviews, ForgeRefusal):
            return reviews
        found += [("line-", row) for row in lines]
        found += [("review-", row) for row in reviews]
    return tuple(found)


def _as_said(kind: str, row: Comment | Review, trusted: bool, account: Account) -> Said:
    body, _ = account.strip(row.body or "")
    comment = isinstance(row, Comment)
    return Said(
        id=f"{kind}{row.id}",
        author=row.user.login if row.user is not None else "",
        text=body,
        time=_time_of(row),
        trusted=trusted,
        path=row.path if comment else "",
        line=(row.line or row.original_line or 0) if comment else 0,
    )


async def _closed_to_us(calls: Calls, repository: Repository) -> ForgeRefusal | None:
    if repository.full_name.casefold() != calls.repository.casefold():
        return refused("moved", text("github.moved"))
    if repository.archived:
        return refused("archived", text("github.archived"))
    push = await calls.may_push()
    if push is None:
        push = repository.permissions is None or repository.permissions.push
    return None if push else refused("forbidden", text("github.no_push"))


def _not_workable(issue: Issue) -> ForgeRefusal | None:
    if issue.state != "open":
        return refused("closed", text("github.closed"))
    if issue.locked:
        return refused("locked", text("github.locked"))
    if len(issue.body or "") > MAX_CHARACTERS:
        return refused("too_large", text("github.too_large"))
    return None


async def _body_trusted(
    calls: Calls, issue: Issue, label: str, believed: Believed, account: Account
) -> bool | ForgeRefusal:
    """Return True if the text is an instruction: its author has write access, or it has not changed since somebody with
    write access set the label. Return a refusal if nobody trusted set the label, unless it is a request of ours."""
    if issue.user is not None and issue.user.is_called(account.us) and issue.pull_request is not None:
        return True
    labelling = await last_labelling(calls, str(issue.number), label)
    if isinstance(labelling, ForgeRefusal):
        return labelling
    meant = await believed.writes(labelling.actor if labelling is not None else None)
    if isinstance(meant, ForgeRefusal):
        return meant
    if not meant or labelling is None:
        return refused("untrusted", text("github.untrusted"))
    own = await believed.writes(issue.user)
    if own is not False:
        return own
    changed = await edited_by_others(calls, (issue,), labelling.time)
    return changed if isinstance(changed, ForgeRefusal) else issue.node_id not in changed

"""Carries out intents on GitHub so that each happens once: looked for first where it may have been done already."""

from __future__ import annotations

from typing import TypeAlias

from daiku.core.work.marks import PROGRESS, mark_of
from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.intents import (
    ForgeIntent,
    MarkReady,
    OpenRequest,
    Outcome,
    PostComment,
    SetState,
    ShowProgress,
)
from daiku.domain.items.item import ItemKey, ItemState
from daiku.settings.config import WorkLabels
from daiku.texts.text import text
from daiku.work.github.calls import Calls, word
from daiku.work.github.shapes import Anything, Comment, Issue, Label, Made, Pull, Repository
from daiku.work.labels import label_of, our_labels, same_label

MAX_TEXT = 65_000
"""GitHub takes 65,536 characters; the mark has its place too."""
_READY = (
    "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"
)
Done: TypeAlias = Outcome | ForgeRefusal


@dataclass(frozen=True, slots=True)
class Writer:
    """Carries out what is wanted of one item."""

    calls: Calls
    key: ItemKey
    labels: WorkLabels
    us: str

    async def apply(self, operation: str, intent: ForgeIntent, again: bool) -> Done:
        mark = mark_of(str(self.key), operation)
        match intent:
            case SetState():
                done = await self._set_state(intent.state)
            case PostComment():
                done = await self._comment(fitting(intent.text, mark), mark, again)
            case ShowProgress():
                done = await self._progress(intent.text)
            case OpenRequest():
                done = await self._open(intent, mark, again)
            case MarkReady():
                done = await self._mark_ready(intent.branch)
        if isinstance(done, ForgeRefusal) and done.kind == "forbidden":
            return await self._why_forbidden(done)
        return done

    @property
    def _issue(self) -> str:
        return f"{self.calls.root}/issues/{self.key.name}"

    async def _set_state(self, state: ItemState) -> Done:
        wanted = label_of(self.labels, state)
        there = await self.calls.pages(Label, f"{self._issue}/labels")
        if isinstance(there, ForgeRefusal):
            return there
        names = [label.name or "" for label in there]
        found = any(same_label(name, wanted) for name in names)
        if not found:
            added = await self.calls.send(Anything, "POST", f"{self._issue}/labels", {"labels": [wanted]})
            if isinstance(added, ForgeRefusal):
                return added
        ours = our_labels(self.labels)
        stale = [
            name
            for name in names
            if not same_label(name, wanted) and any(same_label(name, own) for own in ours)
        ]
        for name in stale:
            gone = await self.calls.send(Anything, "DELETE", f"{self._issue}/labels/{word(name)}")
            if isinstance(gone, ForgeRefusal) and gone.kind != "gone":
                return gone
        return Outcome(reference=wanted, found=found and not stale)

    async def _mine(self, mark: str) -> tuple[Comment, ...] | ForgeRefusal:
        """Our comments with `mark`: anybody may write the mark into one of theirs."""
        comments = await self.calls.pages(Comment, f"{self._issue}/comments")
        if isinstance(comments, ForgeRefusal):
            return comments
        return tuple(
            each
            for each in comments
            if mark in (each.body or "") and each.user is not None and each.user.is_called(self.us)
        )

    async def _comment(self, body: str, mark: str, again: bool) -> Done:
        if again:
            mine = await self._mine(mark)
            if isinstance(mine, ForgeRefusal):
                return mine
            if mine:
                return Outcome(reference=str(mine[0].id), found=True)
        made = await self.calls.send(Made, "POST", f"{self._issue}/comments", {"body": body})
        return made if isinstance(made, ForgeRefusal) else Outcome(reference=str(made.id))

    async def _progress(self, words: str) -> Done:
        body = f"{PROGRESS}\n{words[:MAX_TEXT]}"
        mine = await self._mine(PROGRESS)
        if isinstance(mine, ForgeRefusal):
            return mine
        shown = next((each for each in mine if (each.body or "").startswith(PROGRESS)), None)
        if shown is None:
            made = await self.calls.send(Made, "POST", f"{self._issue}/comments", {"body": body})
        elif shown.body == body:
            return Outcome(reference=str(shown.id), found=True)
        else:
            path = f"{self.calls.root}/issues/comments/{shown.id}"
            made = await self.calls.send(Made, "PATCH", path, {"body": body})
        return made if isinstance(made, ForgeRefusal) else Outcome(reference=str(made.id))

    async def _request_of(self, branch: str, mark: str) -> Pull | ForgeRefusal | None:
        """The request of `branch`: the open one, else one of ours with `mark` that somebody closed."""
        owner = self.calls.repository.partition("/")[0]
        head = word(f"{owner}:{branch}")
        found = await self.calls.pages(Pull, f"{self.calls.root}/pulls?state=all&head={head}")
        if isinstance(found, ForgeRefusal):
            return found
        mine = [pull for pull in found if pull.head.ref == branch]
        opened = next((pull for pull in mine if pull.state == "open"), None)
        marked = (p for p in mine if mark and mark in (p.body or "") and p.user and p.user.is_called(self.us))
        return opened or next(marked, None)

    async def _open(self, intent: OpenRequest, mark: str, again: bool) -> Done:
        if again:
            there = await self._request_of(intent.branch, mark)
            if isinstance(there, ForgeRefusal):
                return there
            if there is not None:
                return Outcome(reference=there.html_url, found=True)
        made = await self._post_request(intent, mark, draft=True)
        if isinstance(made, ForgeRefusal) and made.kind == "bad":
            # Refused for good, so nothing was made: it is there already, or drafts are not had in this repository.
            there = await self._request_of(intent.branch, mark)
            if isinstance(there, Pull):
                return Outcome(reference=there.html_url, found=True)
            made = await self._post_request(intent, mark, draft=False)
            if isinstance(made, ForgeRefusal) and made.kind == "bad":
                return await self._why_bad(intent, made)
        return made if isinstance(made, ForgeRefusal) else Outcome(reference=made.html_url)

    async def _post_request(self, intent: OpenRequest, mark: str, draft: bool) -> Pull | ForgeRefusal:
        return await self.calls.send(
            Pull,
            "POST",
            f"{self.calls.root}/pulls",
            {
                "title": intent.title,
                "head": intent.branch,
                "base": intent.base,
                "body": fitting(intent.text, mark),
                "draft": draft,
            },
        )

    async def _mark_ready(self, branch: str) -> Done:
        pull = await self._request_of(branch, "")
        if isinstance(pull, ForgeRefusal):
            return pull
        if pull is None:
            return ForgeRefusal(kind="gone", message=text("github.no_request", branch=branch))
        if not pull.draft:
            return Outcome(reference=pull.html_url, found=True)
        done = await self.calls.query(Anything, _READY, id=pull.node_id)
        return done if isinstance(done, ForgeRefusal) else Outcome(reference=pull.html_url)

    async def _why_bad(self, intent: OpenRequest, said: ForgeRefusal) -> ForgeRefusal:
        base = await self.calls.get(Anything, f"{self.calls.root}/branches/{word(intent.base)}")
        if isinstance(base, ForgeRefusal) and base.kind in {"gone", "moved"}:
            return ForgeRefusal(kind="moved", message=text("github.no_base", branch=intent.base))
        return said

    async def _why_forbidden(self, said: ForgeRefusal) -> ForgeRefusal:
        repository = await self.calls.get(Repository, self.calls.root)
        if isinstance(repository, Repository) and repository.archived:
            return ForgeRefusal(kind="archived", message=text("github.archived"))
        issue = await self.calls.get(Issue, self._issue)
        if isinstance(issue, Issue) and issue.locked:
            return ForgeRefusal(kind="locked", message=text("github.locked"))
        return said


def fitting(words: str, mark: str) -> str:
    """The text with its mark, cut where GitHub would refuse it."""
    return f"{words[:MAX_TEXT]}\n\n{mark}"

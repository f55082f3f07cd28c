"""Playbooks in memory, a search that finds by words, and lessons put into a kept playbook: what tests of runs share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from daiku.app import App
from daiku.domain.playbook import Bullet, BulletHit, Delta, Playbook, PlaybookScope, SearchQuery, confidence
from daiku.playbook.playbooks import KeepsBullets, PlaybookPair, Playbooks
from daiku.playbook.repository import open_playbooks
from daiku.playbook.rules.changes import ChangeRefusal
from daiku.settings.config import PlaybookSettings


class Held:
    """A playbook whose bullets are these; `asked` counts how often it was looked into."""

    def __init__(self, *bullets: Bullet, version: int = 1) -> None:
        self.bullets = bullets
        self.version = version
        self.asked = 0

    def revision(self) -> int:
        return len(self.bullets)

    def load(self) -> Playbook:
        return Playbook(bullets=self.bullets)

    def versions(self, ids: Sequence[str]) -> Mapping[str, int]:
        self.asked += 1
        return dict.fromkeys({each.id for each in self.bullets} & set(ids), self.version)

    def general(self, sections: Collection[str], most: int, least: float) -> Sequence[Bullet]:
        found = [b for b in self.bullets if b.active and b.section in sections and confidence(b) >= least]
        return sorted(found, key=lambda b: b.harmful - b.helpful)[:most]


class ByWords:
    """Finds the bullets that share a word with the query, those that share most first."""

    def __init__(self, *resting: str) -> None:
        self.resting = resting
        self.queries: list[SearchQuery] = []

    def search(
        self,
        query: SearchQuery,
        playbook: Playbook | KeepsBullets,
        *,
        resting: bool = False,
        related: bool = False,
    ) -> list[BulletHit]:
        bullets = playbook.bullets if isinstance(playbook, Playbook) else playbook.load().bullets
        self.queries.append(query)
        words = set(query.query_text.lower().split())
        shares = ((len(words & set(b.content.lower().split())), b) for b in bullets if b.active)
        found = sorted(((n, b) for n, b in shares if n), key=lambda pair: -pair[0])
        return [
            BulletHit(
                bullet=each,
                vector_score=0,
                bm25_score=0,
                combined_score=n / len(words),
                resting=each.id in self.resting,
            )
            for n, each in found
            if resting or each.id not in self.resting
        ][: query.top_k]


def bullet(id_: str, content: str, section: str = "tool_usage", helpful: int = 0) -> Bullet:
    return Bullet(id=id_, section=section, content=content, helpful=helpful)


def playbooks(
    repository: Held | None = None,
    user: Held | None = None,
    finder: ByWords | None = None,
    **settings: object,
) -> Playbooks:
    """The playbooks of a repository and of a person."""
    kept, found = PlaybookPair(repository, user or Held()), finder or ByWords()
    return Playbooks(PlaybookSettings.model_validate(settings), lambda: kept, lambda: found)


def learn(app: App, content: str, scope: PlaybookScope = "repository", **change: Any) -> str:
    """Put a lesson into a playbook, or change one; its id."""
    assert app.stores is not None
    both = open_playbooks(app.stores.database, app.workspace.roots)
    store = both.user if scope == "user" else both.repository
    assert store is not None
    delta = Delta.model_validate(
        {"id": "", "type": "add", "scope": scope, "section": "environment", "content": content} | change
    )
    done = store.apply(delta)
    assert not isinstance(done, ChangeRefusal), done
    return done.bullet_id

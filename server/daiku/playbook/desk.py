"""API of both playbooks for fronts: list, search, change, and review bullets."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from daiku import api
from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.playbook import (
    Bullet,
    Delta,
    DeltaStatus,
    LearntFrom,
    Observation,
    PlaybookScope,
    SearchQuery,
    confidence,
)
from daiku.guard.rules.redact import Redactor
from daiku.playbook.playbooks import search_factory
from daiku.playbook.rules.changes import (
    ChangeRefusal,
    refuse_empty,
    refuse_unknown_bullet,
    refuse_unknown_change,
)
from daiku.playbook.rules.sections import SECTIONS, normalize_keywords, split_section
from daiku.playbook.rules.shown import list_touched_ids, render_diff
from daiku.playbook.rules.textform import clean_section_name
from daiku.settings import secrets_of
from daiku.settings.config import Config, PlaybookSettings
from daiku.texts.text import ENGLISH, NO_TEXT, Text, text
from daiku.trace.journal import Journal
from daiku.trace.stores import open_stores

if TYPE_CHECKING:
    from daiku.playbook.repository import PlaybookStores
    from daiku.playbook.search import PlaybookSearch
    from daiku.playbook.store import PlaybookStore

_WAITING_FIRST: tuple[tuple[DeltaStatus, ...], ...] = (("proposed",), ())


@dataclass(frozen=True, slots=True)
class PlaybookDesk:
    """The playbooks of the folder's repository and of the user. Methods raise UsageError for unknown ids."""

    playbooks: PlaybookStores
    settings: PlaybookSettings
    journal: Journal
    redact: Callable[[str], str]
    get_search: Callable[[], PlaybookSearch]
    """Creates the search when it is first needed."""
    trusted: bool = True
    """Whether the user trusts the workspace. Without trust it has no playbook and imports nothing."""
    language: str = ENGLISH
    """Language of labels in diffs."""

    # ---- reading

    def list(
        self, scope: PlaybookScope | None, section: str = "", *, everything: bool = False
    ) -> api.PlaybookListResult:
        """Return the bullets in order of addition; without a scope those of both playbooks, the repository's first."""
        bullets = tuple(each for store in self._stores(scope) for each in store.load().bullets)
        selected = tuple(
            each
            for each in bullets
            if (everything or each.active)
            and (not section or split_section(each.section) == split_section(section))
        )
        resting = tuple(each.id for each in selected if confidence(each) < self.settings.min_confidence)
        sections = tuple(dict.fromkeys((*SECTIONS, *(each.section for each in bullets))))
        return api.PlaybookListResult(bullets=selected, resting=resting, sections=sections)

    def search(
        self, query: str, scope: PlaybookScope | None, section: str = "", top_k: int | None = None
    ) -> api.PlaybookSearchResult:
        """Return the bullets related to `query`, best first; those with a low confidence come last."""
        if not query.strip():
            raise build_usage_error(text("playbook.empty_query"))
        search, most = self.get_search(), top_k or self.settings.top_k
        search_query = SearchQuery(
            query_text=query,
            top_k=most,
            section_filter=section or None,
            min_confidence=self.settings.min_confidence,
        )
        hits = [
            hit
            for store in self._stores(scope)
            for hit in search.search(search_query, store, resting=True, related=True)
        ]
        return api.PlaybookSearchResult(
            hits=tuple(sorted(hits, key=lambda hit: (hit.resting, -hit.combined_score))[:most])
        )

    def show(self, bullet_id: str) -> api.PlaybookShowResult:
        """Return a bullet with its history and observations."""
        store, bullet = self._find_bullet(bullet_id)
        return api.PlaybookShowResult(
            bullet=bullet,
            history=tuple(self._format_delta(each, store) for each in store.history(bullet_id)),
            observations=tuple(
                self._format_observation(each, store) for each in store.observations(bullet=bullet_id)
            ),
        )

    def deltas(
        self, scope: PlaybookScope | None, statuses: Iterable[DeltaStatus], newest: int | None = None
    ) -> tuple[api.ShownDelta, ...]:
        """Return the changes with these statuses in the order of their creation.

        With `newest`, the latest so many in the order of their last decision. Without a scope those of both
        playbooks.
        """
        requested, stores = tuple(statuses), self._stores(scope)
        changes = [
            (each, store) for store in stores for each in (store.deltas(*requested) if requested else ())
        ]
        if newest is not None:
            changes = sorted(changes, key=lambda each: each[0].decided_at or each[0].created_at)[-newest:]
        return tuple(self._format_delta(*each) for each in changes)

    @property
    def revision(self) -> str:
        """Revision of all playbooks, as an opaque text."""
        return " ".join(f"{store.scope}:{store.revision()}" for store in self._stores(None))

    def get_status(self) -> api.PlaybookWatchResult:
        """Return the revision, and the numbers of active bullets and pending changes."""
        revision, stores = self.revision, self._stores(None)
        return api.PlaybookWatchResult(
            revision=revision,
            active=sum(each.active for store in stores for each in store.load().bullets),
            waiting=sum(len(store.deltas("proposed")) for store in stores),
            repository=self.playbooks.repository is not None,
        )

    # ---- changes

    def add(
        self,
        section: str,
        content: str,
        scope: PlaybookScope,
        keywords: tuple[str, ...] = (),
        *,
        propose: bool = False,
    ) -> api.PlaybookChange:
        """Add an active bullet, or with `propose` a pending one."""
        if not section.strip():
            raise build_usage_error(text("playbook.no_section"))
        store = self.store(scope)
        redacted = self._redact(content)
        redacted_keywords = tuple(map(self.redact, keywords))
        section_title = clean_section_name(self.redact(section))
        delta = Delta(
            id="",
            type="add",
            scope=scope,
            section=section_title,
            content=redacted,
            keywords=redacted_keywords,
        )
        change = store.propose(delta) if propose else require_applied(store.apply(delta))
        bullet = store.get(change.bullet_id) if change.bullet_id else None
        return api.PlaybookChange(deltas=(change,), bullet=bullet, redacted=redacted != content)

    def update(
        self,
        bullet_id: str,
        content: str | None = None,
        keywords: tuple[str, ...] | None = None,
        *,
        active: bool | None = None,
    ) -> api.PlaybookChange:
        """Change the text or the keywords of a bullet, disable or enable it. Equal values are ignored."""
        store, bullet = self._find_bullet(bullet_id)
        changes: list[Delta] = []
        redacted = bullet.content if content is None else self._redact(content)
        redacted_keywords = (
            bullet.keywords if keywords is None else normalize_keywords(map(self.redact, keywords))
        )
        if (redacted, redacted_keywords) != (bullet.content, bullet.keywords):
            change = Delta(
                id="", type="update", bullet_id=bullet_id, content=redacted, keywords=redacted_keywords
            )
            changes.append(change.model_copy(update={"no_keywords": not redacted_keywords}))
        if active is not None and active != bullet.active:
            changes.append(Delta(id="", type="restore" if active else "remove", bullet_id=bullet_id))
        with self.journal.database.transaction():
            applied = tuple(require_applied(store.apply(each)) for each in changes)
        return api.PlaybookChange(
            deltas=applied,
            bullet=store.get(bullet_id),
            redacted=redacted != (bullet.content if content is None else content),
        )

    def review(
        self, accept: Iterable[api.AcceptedDelta] = (), reject: Iterable[str] = (), undo: Iterable[str] = ()
    ) -> api.PlaybookReviewResult:
        """Decide on changes, each separately. An unknown or repeated id decides none."""
        accept, reject, undo = tuple(accept), tuple(reject), tuple(undo)
        stores = self._find_stores((*(each.id for each in accept), *reject, *undo))
        texts = {each.id: self._redact(each.content) for each in accept if each.content is not None}
        outcomes = [
            *((each.id, stores[each.id].accept(each.id, texts.get(each.id))) for each in accept),
            *((name, stores[name].reject(name)) for name in reject),
            *((name, stores[name].undo(name)) for name in undo),
        ]
        return api.PlaybookReviewResult(
            decided=tuple(outcome for _, outcome in outcomes if isinstance(outcome, Delta)),
            refused=tuple(
                api.RefusedDelta(id=name, message=outcome.message)
                for name, outcome in outcomes
                if isinstance(outcome, ChangeRefusal)
            ),
            redacted=any(texts.get(each.id, each.content) != each.content for each in accept),
        )

    # ---- lookup

    def store(self, scope: PlaybookScope) -> PlaybookStore:
        """Return the playbook of `scope`."""
        if scope == "user":
            return self.playbooks.user
        if self.playbooks.repository is None:
            raise build_usage_error(
                text("playbook.no_folder") if self.trusted else text("playbook.untrusted")
            )
        return self.playbooks.repository

    def _stores(self, scope: PlaybookScope | None) -> tuple[PlaybookStore, ...]:
        if scope is not None:
            return (self.store(scope),)
        both = (self.playbooks.repository, self.playbooks.user)
        return tuple(store for store in both if store is not None)

    def _find_bullet(self, bullet_id: str) -> tuple[PlaybookStore, Bullet]:
        """Return the bullet and its playbook. Ids are unique across both."""
        for store in self._stores(None):
            if (bullet := store.get(bullet_id)) is not None:
                return store, bullet
        raise build_usage_error(refuse_unknown_bullet(bullet_id).message, text("playbook.see_list"))

    def _find_stores(self, ids: Iterable[str]) -> dict[str, PlaybookStore]:
        """Return the playbook of each change. Pending changes, which are few, are searched first."""
        requested: dict[str, PlaybookStore] = {}
        known: dict[str, PlaybookStore] = {}
        for name in ids:
            for statuses in _WAITING_FIRST:
                if name not in known:
                    stores = self._stores(None)
                    known.update({each.id: store for store in stores for each in store.deltas(*statuses)})
            if name not in known:
                raise build_usage_error(refuse_unknown_change(name).message, text("playbook.see_deltas"))
            if name in requested:
                raise build_usage_error(text("playbook.change_twice", id=name))
            requested[name] = known[name]
        return requested

    # ---- formatting

    def _format_delta(self, delta: Delta, store: PlaybookStore) -> api.ShownDelta:
        bullets = {
            name: bullet for name in list_touched_ids(delta) if (bullet := store.get(name)) is not None
        }
        return api.ShownDelta(
            **dict(delta),
            bullets=tuple(bullets.values()),
            diff=render_diff(delta, bullets, self.language),
            places=tuple(self._locate(each) for each in delta.evidence),
        )

    def _format_observation(self, observation: Observation, store: PlaybookStore) -> api.BulletObservation:
        place = LearntFrom(session_id=observation.session, run_id=observation.run, seq=observation.seq)
        return api.BulletObservation(
            verdict=observation.verdict,
            why=observation.why,
            place=self._locate(place),
            version=observation.version,
            counted=store.is_counted(observation),
        )

    def _locate(self, source: LearntFrom) -> api.PlaybookPlace:
        try:
            title = self.journal.get_session(source.session_id).title
        except DaikuError:
            title = ""
        return api.PlaybookPlace(
            session_id=source.session_id, run_id=source.run_id, seq=source.seq, title=title
        )

    def _redact(self, content: str) -> str:
        """Return the text without secrets. Raises UsageError if it is empty."""
        if not content.strip():
            raise build_usage_error(refuse_empty().message)
        return self.redact(content)


def require_applied(outcome: Delta | ChangeRefusal) -> Delta:
    """Return the applied change. Raises UsageError for a refusal."""
    if isinstance(outcome, Delta):
        return outcome
    raise build_usage_error(outcome.message)


def build_desk(
    config: Config, journal: Journal, folders: tuple[Path, ...], language: str, *, trusted: bool
) -> PlaybookDesk:
    """Return the playbooks of these folders in a journal's database, for a user of this language.

    The repository of an untrusted folder is not read: its files could claim to be another one.
    """
    from daiku.playbook.repository import open_playbooks  # when used

    playbooks = open_playbooks(journal.database, folders if trusted else ())
    redact = Redactor(secrets_of(config, os.environ))
    get_search = search_factory(config)
    return PlaybookDesk(playbooks, config.playbook, journal, redact, get_search, trusted, language)


@contextmanager
def open_desk(
    config: Config, home: Path, folder: Path, redact: Callable[[str], str], language: str = ENGLISH
) -> Generator[PlaybookDesk]:
    """Open the playbooks without a model. Raises UsageError."""
    from daiku.playbook.background import build_learner  # when used
    from daiku.playbook.repository import open_playbooks  # when used
    from daiku.playbook.unlearnt import PendingRuns, catch_up  # when used

    stores = open_stores(config.storage.place(home), redact)
    try:
        playbooks = open_playbooks(stores.database, (folder,))
        # The allowed MCP servers are unknown here, so new lessons need review.
        learning = build_learner(config, (folder,), stores, redact, outside=lambda: True)
        if learning is not None:
            catch_up(stores.journal, PendingRuns(stores.database, str(folder)), learning)
        get_search = search_factory(config)
        yield PlaybookDesk(playbooks, config.playbook, stores.journal, redact, get_search, language=language)
    finally:
        stores.close()


def build_usage_error(message: Text, hint: Text = NO_TEXT) -> UsageError:
    return UsageError(Failure(kind="usage", message=message, hint=hint))

"""What fronts may use of the playbook: its bullets looked at, searched and changed, and what waits for a person decided."""

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
    BulletHit,
    Delta,
    DeltaStatus,
    LearntFrom,
    Observation,
    PlaybookScope,
    SearchQuery,
    confidence,
)
from daiku.guard.rules.redact import Redactor
from daiku.playbook.playbooks import searching
from daiku.playbook.rules.refused import (
    ChangeRefusal,
    refuse_empty,
    refuse_unknown_bullet,
    refuse_unknown_change,
)
from daiku.playbook.rules.sections import SECTIONS, keywords_of, section_words
from daiku.playbook.rules.shown import diff_of, touched_by
from daiku.playbook.rules.textform import section_name
from daiku.settings import secrets_of
from daiku.settings.config import Config, PlaybookSettings
from daiku.texts.catalogue import ENGLISH
from daiku.texts.text import NO_TEXT, Text, text
from daiku.trace.journal import Journal
from daiku.trace.stores import open_stores

if TYPE_CHECKING:
    from daiku.app import App
    from daiku.playbook.repository import Playbooks
    from daiku.playbook.search import PlaybookSearch
    from daiku.playbook.store import PlaybookStore

_WAITING_FIRST: tuple[tuple[DeltaStatus, ...], ...] = (("proposed",), ())


@dataclass(frozen=True, slots=True)
class PlaybookDesk:
    """Both playbooks as a person works on them: that of the folder's repository, and their own. Methods raise UsageError
    where a person asks for what is not there."""

    playbooks: Playbooks
    settings: PlaybookSettings
    journal: Journal
    redact: Callable[[str], str]
    searching: Callable[[], PlaybookSearch]
    """What finds bullets; made when something is first looked for."""
    trusted: bool = True
    """Whether the person trusts the workspace; one without trust has no playbook here, and brings nothing into one."""
    language: str = ENGLISH
    """What differences are labelled in."""

    # ---- what is there

    def list(
        self, scope: PlaybookScope | None, section: str = "", *, everything: bool = False
    ) -> api.PlaybookListResult:
        """The bullets in the order of their adding; without a scope those of both, the repository's first."""
        kept = tuple(each for store in self._stores(scope) for each in store.load().bullets)
        found = tuple(
            each
            for each in kept
            if (everything or each.active)
            and (not section or section_words(each.section) == section_words(section))
        )
        resting = tuple(each.id for each in found if confidence(each) < self.settings.min_confidence)
        sections = tuple(dict.fromkeys((*SECTIONS, *(each.section for each in kept))))
        return api.PlaybookListResult(bullets=found, resting=resting, sections=sections)

    def search(
        self, query: str, scope: PlaybookScope | None, section: str = "", top_k: int | None = None
    ) -> api.PlaybookSearchResult:
        """What has to do with `query`, best first; what rests because of what runs showed of it comes last."""
        if not query.strip():
            raise _usage(text("playbook.empty_query"))
        search, most = self.searching(), top_k or self.settings.top_k
        asked = SearchQuery(
            query_text=query,
            top_k=most,
            section_filter=section or None,
            min_confidence=self.settings.min_confidence,
        )
        found = [
            hit
            for store in self._stores(scope)
            for hit in search.search(asked, store, resting=True, related=True)
        ]
        return api.PlaybookSearchResult(hits=tuple(sorted(found, key=_worst_last)[:most]))

    def show(self, bullet_id: str) -> api.PlaybookShowResult:
        """A bullet with its history and what runs showed of it."""
        store, bullet = self._found(bullet_id)
        return api.PlaybookShowResult(
            bullet=bullet,
            history=tuple(self._shown(each, store) for each in store.history(bullet_id)),
            observations=tuple(self._observed(each, store) for each in store.observations(bullet=bullet_id)),
        )

    def deltas(
        self, scope: PlaybookScope | None, statuses: Iterable[DeltaStatus], newest: int | None = None
    ) -> tuple[api.ShownDelta, ...]:
        """The changes that stand so, in the order of their coming, or the `newest` in that of their last decision; without a
        scope those of both playbooks."""
        wanted, stores = tuple(statuses), self._stores(scope)
        found = [(each, store) for store in stores for each in (store.deltas(*wanted) if wanted else ())]
        if newest is not None:
            found = sorted(found, key=lambda each: each[0].decided_at or each[0].created_at)[-newest:]
        return tuple(self._shown(*each) for each in found)

    @property
    def revision(self) -> str:
        """A mark that is another one after each change of a playbook."""
        return " ".join(f"{store.scope}:{store.revision()}" for store in self._stores(None))

    def watched(self) -> api.PlaybookWatchResult:
        """The mark, and how much there is."""
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
        """Add a bullet, active at once, or with `propose` waiting for review."""
        if not section.strip():
            raise _usage(text("playbook.no_section"))
        store = self.store(scope)
        clean = self._clean(content)
        words = tuple(map(self.redact, keywords))
        named = section_name(self.redact(section))
        delta = Delta(id="", type="add", scope=scope, section=named, content=clean, keywords=words)
        made = store.propose(delta) if propose else done(store.apply(delta))
        bullet = store.get(made.bullet_id) if made.bullet_id else None
        return api.PlaybookChange(deltas=(made,), bullet=bullet, redacted=clean != content)

    def update(
        self,
        bullet_id: str,
        content: str | None = None,
        keywords: tuple[str, ...] | None = None,
        *,
        active: bool | None = None,
    ) -> api.PlaybookChange:
        """Change the text or the keywords of a bullet, disable or enable it; what stands so already is left."""
        store, bullet = self._found(bullet_id)
        wanted: list[Delta] = []
        clean = bullet.content if content is None else self._clean(content)
        words = bullet.keywords if keywords is None else keywords_of(map(self.redact, keywords))
        if (clean, words) != (bullet.content, bullet.keywords):
            change = Delta(id="", type="update", bullet_id=bullet_id, content=clean, keywords=words)
            wanted.append(change.model_copy(update={"no_keywords": not words}))
        if active is not None and active != bullet.active:
            wanted.append(Delta(id="", type="restore" if active else "remove", bullet_id=bullet_id))
        with self.journal.database.transaction():
            made = tuple(done(store.apply(each)) for each in wanted)
        return api.PlaybookChange(
            deltas=made,
            bullet=store.get(bullet_id),
            redacted=clean != (bullet.content if content is None else content),
        )

    def review(
        self, accept: Iterable[api.AcceptedDelta] = (), reject: Iterable[str] = (), undo: Iterable[str] = ()
    ) -> api.PlaybookReviewResult:
        """Decide on changes, each by itself; nothing is decided where one of them is not known, or named twice."""
        accept, reject, undo = tuple(accept), tuple(reject), tuple(undo)
        places = self._places((*(each.id for each in accept), *reject, *undo))
        texts = {each.id: self._clean(each.content) for each in accept if each.content is not None}
        outcomes = [
            *((each.id, places[each.id].accept(each.id, texts.get(each.id))) for each in accept),
            *((name, places[name].reject(name)) for name in reject),
            *((name, places[name].undo(name)) for name in undo),
        ]
        return api.PlaybookReviewResult(
            decided=tuple(made for _, made in outcomes if isinstance(made, Delta)),
            refused=tuple(
                api.RefusedDelta(id=name, message=made.message)
                for name, made in outcomes
                if isinstance(made, ChangeRefusal)
            ),
            redacted=any(texts.get(each.id, each.content) != each.content for each in accept),
        )

    # ---- places

    def store(self, scope: PlaybookScope) -> PlaybookStore:
        """The playbook of `scope`."""
        if scope == "user":
            return self.playbooks.user
        if self.playbooks.repository is None:
            raise _usage(text("playbook.no_folder") if self.trusted else text("playbook.untrusted"))
        return self.playbooks.repository

    def _stores(self, scope: PlaybookScope | None) -> tuple[PlaybookStore, ...]:
        if scope is not None:
            return (self.store(scope),)
        both = (self.playbooks.repository, self.playbooks.user)
        return tuple(store for store in both if store is not None)

    def _found(self, bullet_id: str) -> tuple[PlaybookStore, Bullet]:
        """The bullet, and the playbook that holds it: the two have no ids in common."""
        for store in self._stores(None):
            if (bullet := store.get(bullet_id)) is not None:
                return store, bullet
        raise _usage(refuse_unknown_bullet(bullet_id).message, text("playbook.see_list"))

    def _places(self, ids: Iterable[str]) -> dict[str, PlaybookStore]:
        """The playbook of each change. Those that wait are looked through first: they are few."""
        found: dict[str, PlaybookStore] = {}
        known: dict[str, PlaybookStore] = {}
        for name in ids:
            for statuses in _WAITING_FIRST:
                if name not in known:
                    stores = self._stores(None)
                    known.update({each.id: store for store in stores for each in store.deltas(*statuses)})
            if name not in known:
                raise _usage(refuse_unknown_change(name).message, text("playbook.see_deltas"))
            if name in found:
                raise _usage(text("playbook.change_twice", id=name))
            found[name] = known[name]
        return found

    # ---- how it is shown

    def _shown(self, delta: Delta, store: PlaybookStore) -> api.ShownDelta:
        known = {name: bullet for name in touched_by(delta) if (bullet := store.get(name)) is not None}
        return api.ShownDelta(
            **dict(delta),
            bullets=tuple(known.values()),
            diff=diff_of(delta, known, self.language),
            places=tuple(self._place(each) for each in delta.evidence),
        )

    def _observed(self, seen: Observation, store: PlaybookStore) -> api.BulletObservation:
        place = LearntFrom(session_id=seen.session, run_id=seen.run, seq=seen.seq)
        return api.BulletObservation(
            verdict=seen.verdict,
            why=seen.why,
            place=self._place(place),
            version=seen.version,
            counted=store.is_counted(seen),
        )

    def _place(self, learnt: LearntFrom) -> api.PlaybookPlace:
        try:
            title = self.journal.get_session(learnt.session_id).title
        except DaikuError:
            title = ""
        return api.PlaybookPlace(
            session_id=learnt.session_id, run_id=learnt.run_id, seq=learnt.seq, title=title
        )

    def _clean(self, content: str) -> str:
        """The text without secrets."""
        if not content.strip():
            raise _usage(refuse_empty().message)
        return self.redact(content)


def done(outcome: Delta | ChangeRefusal) -> Delta:
    """The change that was made. Raises UsageError where it was not."""
    if isinstance(outcome, Delta):
        return outcome
    raise _usage(outcome.message)


def desk_of(app: App, language: str) -> PlaybookDesk:
    """The playbooks of the database in which the app keeps its conversations, for a person of this language. Which repository a
    folder without trust would be is not even read: what its files say could make it that of another one."""
    from daiku.playbook.repository import open_playbooks  # when used

    trusted = app.runs.services.trusted
    playbooks = open_playbooks(app.journal.database, app.workspace.roots if trusted else ())
    redact = Redactor(secrets_of(app.config, os.environ))
    search = searching(app.config)
    return PlaybookDesk(playbooks, app.config.playbook, app.journal, redact, search, trusted, language)


@contextmanager
def open_desk(
    config: Config, home: Path, folder: Path, redact: Callable[[str], str], language: str = ENGLISH
) -> Generator[PlaybookDesk]:
    """The playbooks alone: to work on them needs no model. Raises UsageError."""
    from daiku.playbook.background import build_learner  # when used
    from daiku.playbook.repository import open_playbooks  # when used
    from daiku.playbook.unlearnt import PendingRuns, catch_up  # when used

    stores = open_stores(config.storage.place(home), redact)
    try:
        playbooks = open_playbooks(stores.database, (folder,))
        # Which MCP servers are allowed is not asked here: what is learnt so waits for a person.
        learning = build_learner(config, (folder,), stores, redact, outside=lambda: True)
        if learning is not None:
            catch_up(stores.journal, PendingRuns(stores.database, str(folder)), learning)
        search = searching(config)
        yield PlaybookDesk(playbooks, config.playbook, stores.journal, redact, search, language=language)
    finally:
        stores.close()


def _worst_last(hit: BulletHit) -> tuple[bool, float]:
    return hit.resting, -hit.combined_score


def _usage(message: Text, hint: Text = NO_TEXT) -> UsageError:
    return UsageError(Failure(kind="usage", message=message, hint=hint))

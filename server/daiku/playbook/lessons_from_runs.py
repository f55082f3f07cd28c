"""Put what runs taught into a playbook: proposed to the person, or applied where it needs no review."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, Protocol

from daiku.core.playbook.evidence.outcome import outcomes_of
from daiku.core.playbook.insights.proposals import merges_and_removals
from daiku.core.playbook.lessons.automatic import Allows, is_tainted, needs_review
from daiku.core.playbook.lessons.curate import confirmed, curate, distinct, refine
from daiku.core.playbook.lessons.proposal import Proposal, redacted
from daiku.core.playbook.lessons.reflect import reflect
from daiku.core.playbook.lessons.similar import Alike, says_the_same
from daiku.core.playbook.likeness import near_duplicates
from daiku.core.playbook.refused import Refused
from daiku.core.retrieval.terms import terms
from daiku.dataclass import replace
from daiku.domain.chunks import Chunk
from daiku.domain.events import RunStarted
from daiku.domain.held import Reflected
from daiku.domain.playbook import Bullet, Delta, DeltaStatus, LearntFrom, Playbook

LearnMode = Literal["off", "review", "auto"]
FEW = 200
"""Bullets that are all held against one another when something was learnt; of more, only what was changed against all."""
WELL_FOUNDED = 2
"""So many runs more for a bullet than against it: a second run has to show that another text is right."""
_PERSON_SAID = frozenset({"rejected", "corrected"})
"""What taught a lesson in a person's own words. Those are no accident: they hold against what runs showed before."""
_TAKEN_BACK = frozenset({"edits_refused", "edits_rejected", "edits_restored"})
_PERSONS = frozenset({"person", "import"})
"""Whose words a rule does not change by itself."""
LEAST_AGAIN = 2
"""So many further runs have to teach at least what a person did not want."""


class KeepsLessons(Protocol):
    """What of a store of a playbook learning needs."""

    def load(self) -> Playbook: ...
    def bullets(self, ids: Sequence[str]) -> Mapping[str, Bullet]: ...
    def history(self, bullet: str) -> tuple[Delta, ...]: ...
    def propose(self, delta: Delta) -> Delta: ...
    def apply(self, delta: Delta) -> Delta | Refused: ...
    def accept(self, delta_id: str) -> Delta | Refused: ...
    def deltas(self, *statuses: DeltaStatus) -> tuple[Delta, ...]: ...
    def learnt_again(self, delta_id: str, places: Sequence[LearntFrom]) -> Delta | Refused: ...


def learn_from(
    store: KeepsLessons,
    chunks: Sequence[Chunk],
    *,
    learn: LearnMode,
    trusted: bool,
    redact: Callable[[str], str],
    allows: Allows = bool,
    insights: Iterable[Proposal] = (),
    outside: bool = False,
) -> tuple[Delta, ...]:
    """Learn from the runs of a session and return the changes that were proposed or applied.

    `chunks` are all of the session as far as it is known. Each place in a session teaches a lesson once: called again, this
    changes nothing. What a person rejected or took back is proposed once more only if enough further runs taught it.
    `allows` decides which commands need no review. `insights` are a model's and always wait. `outside`: the model read text
    that is not on record, such as the tool descriptions of MCP servers."""
    if learn == "off" or not trusted or not (taught := (*reflect(chunks), *insights)):
        return ()
    changes = store.deltas()
    known = {(each.why, place) for each in changes for place in each.evidence}
    alike = near_duplicates()
    found = [redacted(each, redact) for each in taught if each.evidence]
    told = distinct(about_what_misled(found, chunks), alike)
    clean = [each for each in told if (each.why, each.evidence[-1]) not in known]
    before, decided = store.load(), [each for each in changes if each.status != "applied"]
    again, due = confirmed(clean, decided, alike), _due(store, clean, before, decided)
    if not again and not due and not curate(clean, before, alike, decided=decided):
        return ()
    if outside or is_tainted(chunks):
        clean = [replace(each, doubts=("tainted",)) for each in clean]
    applies = _applies(learn, allows)
    made = [_apply_or_propose(store, each, applies) for each in curate(clean, before, alike, decided=decided)]
    made += [store.propose(_once_more(each, due[at], before)) for at, each in enumerate(clean) if at in due]
    made += _accepted(store, confirmed([each for each in clean if not each.doubts], again, alike), applies)
    few = len(before.bullets) <= FEW
    changed = None if few else {each.bullet_id for each in made if each.status == "applied"}
    return (*made, *merge_duplicates(store, learn=learn, changed=changed)) if made else ()


def _applies(learn: LearnMode, allows: Allows) -> Callable[[Delta], bool]:
    """Return what decides whether a change is applied without review."""
    return lambda change: learn == "auto" and not needs_review(change, allows)


def about_what_misled(proposals: Sequence[Proposal], chunks: Sequence[Chunk]) -> list[Proposal]:
    """Return the proposals, with the lesson that each correction is to change.

    A correction changes the only lesson whose edits the user took back; as a second lesson it would contradict that one."""
    if not any(each.why in _PERSON_SAID for each in proposals):
        return list(proposals)
    runs = list(dict.fromkeys(chunk.run for chunk in chunks if chunk.parent is None))
    texts = {
        each.id: each.text
        for chunk in chunks
        if isinstance(chunk.event, RunStarted)
        for each in chunk.event.lessons
    }
    misled: dict[str, str] = {}
    for outcome in outcomes_of(chunks) if texts else ():
        taken_back = [each.bullet for each in outcome.bullets if each.why in _TAKEN_BACK]
        if len(taken_back) == 1:
            misled[outcome.run] = taken_back[0]

    def about(proposal: Proposal) -> str:
        run = proposal.evidence[-1].run_id
        at = runs.index(run) if run in runs else 0
        before = misled.get(run) or (misled.get(runs[at - 1], "") if at else "")
        return before if _share_a_word(proposal.content, texts.get(before, "")) else ""

    return [
        replace(each, about=about(each)) if each.why in _PERSON_SAID and not each.about else each
        for each in proposals
    ]


def _share_a_word(one: str, other: str) -> bool:
    """Return True if two texts share a word of more than three letters."""
    return any(len(term) > 3 for term in set(terms(one)) & set(terms(other)))


def propose_asked(
    store: KeepsLessons, chunks: Sequence[Chunk], redact: Callable[[str], str]
) -> tuple[Delta, ...]:
    """Propose, once, the merges and removals that a model asked for: they wait for a person."""
    if not any(isinstance(each.event, Reflected) for each in chunks):
        return ()
    asked = merges_and_removals(chunks, store.load(), store.deltas())
    doubts = ("tainted",) if asked and is_tainted(chunks) else ()
    return tuple(
        store.propose(each.model_copy(update={"content": redact(each.content), "doubts": doubts}))
        for each in asked
    )


def merge_duplicates(
    store: KeepsLessons, *, learn: LearnMode, changed: Collection[str] | None = None
) -> tuple[Delta, ...]:
    """Merge the bullets of a playbook that say the same, or propose it, once. `changed`: only these are held against all."""
    found = refine(store.load(), near_duplicates(), changed=changed)
    if not found:
        return ()
    decided = {(each.bullet_id, each.bullet_ids) for each in store.deltas("proposed", "rejected", "undone")}
    applies = _applies(learn, bool)
    return tuple(
        _apply_or_propose(store, each, applies)
        for each in found
        if (each.bullet_id, each.bullet_ids) not in decided
    )


def _apply_or_propose(store: KeepsLessons, delta: Delta, applies: Callable[[Delta], bool]) -> Delta:
    """Apply a change that needs no review, and propose any other.

    What the user wrote is never changed without review. Counts of a run are always applied."""
    unasked = applies(delta) and not _is_well_founded(store, delta)
    if delta.type == "tag" or (unasked and not touches_words_of_a_person(store, delta)):
        applied = store.apply(delta)
        if not isinstance(applied, Refused):
            return applied
    return store.propose(delta)


def _accepted(store: KeepsLessons, waiting: Sequence[Delta], applies: Callable[[Delta], bool]) -> list[Delta]:
    """Accept the waiting changes that a second run showed too and that need no review."""
    unasked = [each for each in waiting if applies(each)]
    done = [store.accept(each.id) for each in unasked if not touches_words_of_a_person(store, each)]
    return [each for each in done if not isinstance(each, Refused)]


def _is_well_founded(store: KeepsLessons, delta: Delta) -> bool:
    """Return True if `delta` replaces a text that several runs confirmed: one run does not outweigh them."""
    if delta.type != "update" or delta.why in _PERSON_SAID:
        return False
    bullet = store.bullets((delta.bullet_id,)).get(delta.bullet_id)
    return bullet is not None and bullet.helpful - bullet.harmful >= WELL_FOUNDED


def touches_words_of_a_person(store: KeepsLessons, delta: Delta) -> bool:
    """Return True if the user wrote, imported, or edited a bullet that `delta` changes."""
    touched = [name for name in dict.fromkeys((delta.bullet_id, *delta.bullet_ids)) if name]
    if any(each.origin in _PERSONS for each in store.bullets(touched).values()):
        return True
    return any(
        each.bullet_id == name and each.status == "applied" and each.origin in _PERSONS
        for name in touched
        for each in store.history(name)
    )


def _due(
    store: KeepsLessons, clean: Sequence[Proposal], before: Playbook, decided: Sequence[Delta]
) -> dict[int, Delta]:
    """Find the rejected or undone lessons to propose once more, by their index in `clean`.

    Of every other rejected lesson, record that it was learnt again."""
    alike, found = near_duplicates(), dict[int, Delta]()
    for at, each in enumerate(clean):
        earlier = _turned_down(each, decided, alike)
        if earlier is None or set(each.evidence) <= set(earlier.again):
            continue
        if all(made.type == "tag" for made in curate([each], before, alike)):
            continue
        kept = store.learnt_again(earlier.id, each.evidence)
        if isinstance(kept, Delta) and _is_due(kept):
            found[at] = kept
    return found


def _once_more(proposal: Proposal, earlier: Delta, before: Playbook) -> Delta:
    """Build the change for a lesson that was rejected before, with all runs that taught it; it always waits."""
    (made,) = curate([proposal], before, near_duplicates())
    places = tuple(dict.fromkeys((*earlier.evidence, *earlier.again)))
    return made.model_copy(update={"evidence": places, "doubts": (*made.doubts, "rejected")})


def _turned_down(proposal: Proposal, decided: Sequence[Delta], alike: Alike) -> Delta | None:
    """Return the last change like `proposal` that a person rejected or took back.

    None if there is none, or if such a change waits for them already."""
    same = [each for each in decided if says_the_same(proposal.content, each.content, alike)]
    same = [each for each in same if each.type in ("add", "update")]
    if not same or any(each.status == "proposed" for each in same):
        return None
    return same[-1] if same[-1].status in ("rejected", "undone") else None


def _is_due(delta: Delta) -> bool:
    """Return True if a rejected change was taught by as many further runs as before the rejection.

    So it takes longer after each rejection until it is proposed again."""
    return _count_runs(delta.again) >= max(LEAST_AGAIN, _count_runs(delta.evidence))


def _count_runs(places: Iterable[LearntFrom]) -> int:
    """Count the runs of these places."""
    return len({(each.session_id, each.run_id) for each in places})

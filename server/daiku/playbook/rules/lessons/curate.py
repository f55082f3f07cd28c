"""The Curator by rule: what becomes of proposals, given the playbook and what a person said to earlier ones; merging."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from daiku.dataclass import replace
from daiku.domain.playbook import Bullet, Delta, Playbook
from daiku.playbook.rules.lessons.proposal import Proposal, code_spans
from daiku.playbook.rules.lessons.similar import Alike, adds_words, says_the_same, without_numbers

MOST = 8
"""Changes that one run may propose."""


def curate(
    proposals: Sequence[Proposal], playbook: Playbook, alike: Alike, *, decided: Sequence[Delta] = ()
) -> tuple[Delta, ...]:
    """The changes that `proposals` come to, without ids; nothing is deleted. `decided`: changes that wait for a person,
    or that one rejected or undid: what says the same as one of them is not proposed again, nor is what an active bullet
    says already, nor what a person took out."""
    unwanted = [
        each.content
        for each in decided
        if each.status in ("rejected", "undone") and each.type in ("add", "update")
    ]
    unwanted += [each.content for each in playbook.bullets if not each.active]
    active = [each for each in playbook.bullets if each.active]
    made: list[Delta] = []
    for proposal in distinct(proposals, alike):
        if any(says_the_same(proposal.content, each, alike) for each in unwanted):
            continue
        if confirmed([proposal], decided, alike):
            continue
        delta = _delta(proposal, active, alike)
        if delta is not None and all(
            each.bullet_id != delta.bullet_id or not each.bullet_id for each in made
        ):
            made.append(delta)
    return tuple(made[:MOST])


def confirmed(proposals: Sequence[Proposal], decided: Sequence[Delta], alike: Alike) -> list[Delta]:
    """Those changes that wait, and that say what one of `proposals`, learnt elsewhere, says too."""
    waiting = (each for each in decided if each.status == "proposed" and each.type in ("add", "update"))
    return [each for each in waiting if any(_repeats(one, each, alike) for one in proposals)]


def _repeats(proposal: Proposal, waiting: Delta, alike: Alike) -> bool:
    """Whether a proposal says what waits already: in the same words, or the same command in place of others."""
    if says_the_same(proposal.content, waiting.content, alike):
        return True
    replaced = proposal.why == waiting.why == "command_replaced"
    return replaced and proposal.keywords[:1] == waiting.keywords[:1]


def refine(playbook: Playbook, alike: Alike, *, changed: Collection[str] | None = None) -> tuple[Delta, ...]:
    """The merges of active bullets that say the same: the first one stays, with its id and text, and takes the counts of
    the others. Once they are applied there is nothing more to merge. `changed`: only these are held against all."""
    kept: list[tuple[Bullet, list[Bullet]]] = []
    looked_at: list[tuple[Bullet, list[Bullet]]] = []
    for bullet in playbook.bullets:
        if not bullet.active:
            continue
        among = changed is None or bullet.id in changed
        same = (
            each
            for each in (kept if among else looked_at)
            if says_the_same(bullet.content, each[0].content, alike)
        )
        if (found := next(same, None)) is not None:
            found[1].append(bullet)
            continue
        kept.append((bullet, []))
        if among:
            looked_at.append(kept[-1])
    return tuple(_merge(first, others) for first, others in kept if others)


def _merge(first: Bullet, others: Sequence[Bullet]) -> Delta:
    keywords = dict.fromkeys(word for each in (first, *others) for word in each.keywords)
    return Delta(
        id="",
        type="merge",
        section=first.section,
        content=first.content,
        keywords=tuple(keywords),
        bullet_id=first.id,
        bullet_ids=tuple(each.id for each in others),
        origin="rule",
        why="duplicates",
    )


def distinct(proposals: Iterable[Proposal], alike: Alike) -> list[Proposal]:
    """Proposals that say different things; of two about the same failed command the later one counts."""
    kept: list[Proposal] = []
    for proposal in proposals:
        twin = next(
            (n for n, each in enumerate(kept) if says_the_same(each.content, proposal.content, alike)), None
        )
        if twin is not None:
            evidence = tuple(dict.fromkeys((*kept[twin].evidence, *proposal.evidence)))
            kept[twin] = replace(kept[twin], evidence=evidence)
            continue
        kept = [each for each in kept if not _replaces(proposal, each)]
        kept.append(proposal)
    return kept


def _replaces(later: Proposal, earlier: Proposal) -> bool:
    return later.why == earlier.why == "command_replaced" and bool(set(later.failed) & set(earlier.failed))


def _delta(proposal: Proposal, active: Sequence[Bullet], alike: Alike) -> Delta | None:
    same = next((each for each in active if says_the_same(proposal.content, each.content, alike)), None)
    if same is not None and _is_doubted(same):  # that a model says it again is no evidence
        return None if proposal.origin == "model" else _tag(proposal, same)
    if same is not None:
        told = same.origin == "person" or not adds_words(proposal.content, same.content)
        return None if told else _update(proposal, same)
    good = [each for each in active if not _is_doubted(each)]
    about = next((each for each in good if _is_about(proposal, each)), None)
    about = about or next((each for each in good if each.id == proposal.about), None)
    if about is not None:
        return _update(proposal, about)
    near = next((each for each in good if _is_near(proposal, each, alike)), None)
    return _add(proposal) if near is None else _update(proposal, near)


def _is_doubted(bullet: Bullet) -> bool:
    """Whether runs showed more against a bullet than for it. A new text would inherit that: it comes beside it."""
    return bullet.harmful > bullet.helpful


def _is_about(proposal: Proposal, bullet: Bullet) -> bool:
    """Whether the bullet speaks of a command that, as the proposal has it, fails or is not wanted."""
    return not set(proposal.failed).isdisjoint(code_spans(bullet.content))


def _is_near(proposal: Proposal, bullet: Bullet, alike: Alike) -> bool:
    """Whether the bullet says otherwise in nearly the same words about the same commands: it forbids what is asked for
    now, or names another number."""
    same_commands = set(code_spans(proposal.content)) == set(code_spans(bullet.content))
    return same_commands and alike(without_numbers(proposal.content), without_numbers(bullet.content))


def _add(proposal: Proposal) -> Delta:
    return Delta(
        id="",
        type="add",
        section=proposal.section,
        content=proposal.content,
        keywords=proposal.keywords,
        origin=proposal.origin,
        why=proposal.why,
        evidence=proposal.evidence,
    )


def _tag(proposal: Proposal, bullet: Bullet) -> Delta:
    """A run showed once more what a bullet says that others had shown to be wrong."""
    return Delta(
        id="",
        type="tag",
        tag="helpful",
        section=bullet.section,
        bullet_id=bullet.id,
        origin=proposal.origin,
        why=proposal.why,
        evidence=proposal.evidence[-1:],
    )


def _update(proposal: Proposal, bullet: Bullet) -> Delta:
    keywords = tuple(dict.fromkeys((*proposal.keywords, *bullet.keywords)))
    return _add(proposal).model_copy(
        update={"type": "update", "bullet_id": bullet.id, "section": bullet.section, "keywords": keywords}
    )

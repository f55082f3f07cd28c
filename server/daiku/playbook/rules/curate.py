"""Merge proposals into a playbook without a model (the Curator by rule)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from daiku.dataclass import replace
from daiku.domain.playbook import Bullet, Delta, Playbook
from daiku.playbook.rules.proposals import Proposal, find_code_spans
from daiku.playbook.rules.similar import Alike, adds_words, have_same_meaning, mask_numbers

MOST = 8
"""Maximum number of changes proposed by one run."""


def curate(
    proposals: Sequence[Proposal], playbook: Playbook, alike: Alike, *, decided: Sequence[Delta] = ()
) -> tuple[Delta, ...]:
    """Return the changes that `proposals` lead to, without ids. Nothing is deleted.

    `decided`: pending, rejected, and undone changes. A proposal is dropped if it says the same as one of
    them, as an active bullet, or as a bullet that the user disabled.
    """
    unwanted = [
        each.content
        for each in decided
        if each.status in ("rejected", "undone") and each.type in ("add", "update")
    ]
    unwanted += [each.content for each in playbook.bullets if not each.active]
    active = [each for each in playbook.bullets if each.active]
    changes: list[Delta] = []
    for proposal in merge_proposals(proposals, alike):
        if any(have_same_meaning(proposal.content, each, alike) for each in unwanted):
            continue
        if find_confirmed([proposal], decided, alike) or _is_named(proposal, playbook.bullets, decided):
            continue
        delta = _to_change(proposal, active, alike)
        if delta is not None and all(
            each.bullet_id != delta.bullet_id or not each.bullet_id for each in changes
        ):
            changes.append(delta)
    return tuple(changes[:MOST])


def find_confirmed(proposals: Sequence[Proposal], decided: Sequence[Delta], alike: Alike) -> list[Delta]:
    """Return the pending changes that one of `proposals`, from another run, repeats."""
    pending = (each for each in decided if each.status == "proposed" and each.type in ("add", "update"))
    return [each for each in pending if any(_is_repetition(proposal, each, alike) for proposal in proposals)]


def _is_named(proposal: Proposal, bullets: Sequence[Bullet], decided: Sequence[Delta]) -> bool:
    """Return True if a check that only passed is named by a lesson, active or not, or by a change."""
    texts = (each.content for each in (*bullets, *decided))
    return proposal.why == "passed_twice" and any(
        proposal.keywords[0] in find_code_spans(each) for each in texts
    )


def _is_repetition(proposal: Proposal, pending: Delta, alike: Alike) -> bool:
    """Return True if a proposal says the same as a pending change, or replaces the same command."""
    if have_same_meaning(proposal.content, pending.content, alike):
        return True
    replaced = proposal.why == pending.why == "command_replaced"
    return replaced and proposal.keywords[:1] == pending.keywords[:1]


def refine(playbook: Playbook, alike: Alike, *, changed: Collection[str] | None = None) -> tuple[Delta, ...]:
    """Return the merges of active bullets that say the same.

    The first bullet stays, with its id and text, and takes the counters of the others. Once the merges are
    applied there are no more. `changed`: compare only these bullets with all.
    """
    groups: list[tuple[Bullet, list[Bullet]]] = []
    changed_groups: list[tuple[Bullet, list[Bullet]]] = []
    for bullet in playbook.bullets:
        if not bullet.active:
            continue
        is_compared = changed is None or bullet.id in changed
        matches = (
            each
            for each in (groups if is_compared else changed_groups)
            if have_same_meaning(bullet.content, each[0].content, alike)
        )
        if (group := next(matches, None)) is not None:
            group[1].append(bullet)
            continue
        groups.append((bullet, []))
        if is_compared:
            changed_groups.append(groups[-1])
    return tuple(_build_merge(first, others) for first, others in groups if others)


def _build_merge(first: Bullet, others: Sequence[Bullet]) -> Delta:
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


def merge_proposals(proposals: Iterable[Proposal], alike: Alike) -> list[Proposal]:
    """Merge proposals that say the same; of two about the same failed command keep the later one."""
    result: list[Proposal] = []
    for proposal in proposals:
        twin = next(
            (n for n, each in enumerate(result) if have_same_meaning(each.content, proposal.content, alike)),
            None,
        )
        if twin is not None:
            evidence = tuple(dict.fromkeys((*result[twin].evidence, *proposal.evidence)))
            result[twin] = replace(result[twin], evidence=evidence)
            continue
        result = [each for each in result if not _supersedes(proposal, each)]
        result.append(proposal)
    return result


def _supersedes(later: Proposal, earlier: Proposal) -> bool:
    return later.why == earlier.why == "command_replaced" and bool(set(later.failed) & set(earlier.failed))


def _to_change(proposal: Proposal, active: Sequence[Bullet], alike: Alike) -> Delta | None:
    """Return the change that a proposal leads to; None if there is nothing to change."""
    same = next((each for each in active if have_same_meaning(proposal.content, each.content, alike)), None)
    if same is not None and _is_refuted(same):  # a model's repetition is no evidence
        return None if proposal.origin == "model" else _build_tag(proposal, same)
    if same is not None:
        is_known = same.origin == "person" or not adds_words(proposal.content, same.content)
        return None if is_known else _build_update(proposal, same)
    good = [each for each in active if not _is_refuted(each)]
    target = next((each for each in good if _is_about(proposal, each)), None)
    target = target or next((each for each in good if each.id == proposal.about), None)
    if target is not None:
        return _build_update(proposal, target)
    near = next((each for each in good if _is_near(proposal, each, alike)), None)
    return _build_add(proposal) if near is None else _build_update(proposal, near)


def _is_refuted(bullet: Bullet) -> bool:
    """Return True if more runs speak against a bullet than for it. Such a bullet is not updated."""
    return bullet.harmful > bullet.helpful


def _is_about(proposal: Proposal, bullet: Bullet) -> bool:
    """Return True if the bullet mentions a command that fails or is rejected according to the proposal."""
    return not set(proposal.failed).isdisjoint(find_code_spans(bullet.content))


def _is_near(proposal: Proposal, bullet: Bullet, alike: Alike) -> bool:
    """Return True if the bullet has nearly the same words about the same commands, but contradicts them."""
    same_commands = set(find_code_spans(proposal.content)) == set(find_code_spans(bullet.content))
    return same_commands and alike(mask_numbers(proposal.content), mask_numbers(bullet.content))


def _build_add(proposal: Proposal) -> Delta:
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


def _build_tag(proposal: Proposal, bullet: Bullet) -> Delta:
    """Return a `helpful` tag: a run confirmed a bullet that others had refuted."""
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


def _build_update(proposal: Proposal, bullet: Bullet) -> Delta:
    keywords = tuple(dict.fromkeys((*proposal.keywords, *bullet.keywords)))
    return _build_add(proposal).model_copy(
        update={"type": "update", "bullet_id": bullet.id, "section": bullet.section, "keywords": keywords}
    )

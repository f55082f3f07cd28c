"""What an import brings: which texts a playbook holds already, and ids, their own where these are free, else new ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from daiku.core.playbook.sections import bullet_id, id_parts, section_words, slug_of
from daiku.domain.playbook import Bullet, PlaybookScope


def not_held(
    bullets: Sequence[Bullet], scope: PlaybookScope, held: Callable[[], Iterable[tuple[str, str]]]
) -> tuple[bool, ...]:
    """Whether each bullet is new: one without an id of such a playbook is known by its text alone, and not taken a second
    time where one of `held` (sections and texts) says the same in the same section. One with such an id is new."""
    anonymous = [id_parts(each.id, scope) is None for each in bullets]
    known = {_words(*each) for each in held()} if any(anonymous) else set[tuple[tuple[str, ...], str]]()
    return tuple(
        not (nameless and _words(each.section, each.content) in known)
        for each, nameless in zip(bullets, anonymous, strict=True)
    )


def _words(section: str, content: str) -> tuple[tuple[str, ...], str]:
    """A section however it is spelt, and a text whatever white space is in it."""
    return section_words(section), " ".join(content.split())


def with_ids(
    bullets: Sequence[Bullet], scope: PlaybookScope, is_taken: Callable[[str], bool]
) -> tuple[Bullet, ...]:
    """The bullets with the ids that they are to have: one that is taken, stands a second time, or is no id of this
    playbook gets a number above all others of its slug in the text, so that it takes none of theirs."""
    last = Counter[str]()
    for bullet in bullets:
        if (parts := id_parts(bullet.id, scope)) is not None:
            last[parts[0]] = max(last[parts[0]], parts[1])
    given: set[str] = set()
    found: list[Bullet] = []
    for bullet in bullets:
        parts = id_parts(bullet.id, scope)
        name = bullet.id
        if parts is None or name in given or is_taken(name):
            slug = slug_of(bullet.section, scope) if parts is None else parts[0]
            last[slug] += 1
            while is_taken(name := bullet_id(slug, last[slug])):
                last[slug] += 1
        given.add(name)
        found.append(bullet.model_copy(update={"id": name}))
    return tuple(found)

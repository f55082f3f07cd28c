"""Playbooks as files: written in three forms, and read again, with every new id and everything left out told."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from daiku.domain.base import Localizable, Wire
from daiku.domain.errors import Failure, UsageError
from daiku.domain.playbook import Bullet, Delta, PlaybookScope
from daiku.playbook.desk.desk import PlaybookDesk, done
from daiku.playbook.rows import storable
from daiku.playbook.rules.sections import MOST_COUNTED, bullet_id, id_parts, section_words, slug_of
from daiku.playbook.rules.textform import (
    ReadText,
    UnreadableText,
    ace_text,
    agents_text,
    is_ace,
    json_text,
    read_ace,
    read_agents,
    read_json,
    section_name,
)
from daiku.texts.rules.visible import drop_hidden
from daiku.texts.text import NO_TEXT, Text, text
from daiku.workspace.repository import may_be_repository

if TYPE_CHECKING:
    from daiku.playbook.store import PlaybookStore

PlaybookForm: TypeAlias = Literal["ace", "json", "agents"]
ReviewReason: TypeAlias = Literal["of_repository", "untrusted_folder", "of_anybody"]
"""Why the lessons of a file wait for review: the file is part of a repository, so that others may have written it; it
came with a folder that the user does not trust; or it was read from standard input."""
LARGEST = 64_000_000
"""Bytes of a file that is read."""


class Renumbered(Wire):
    """A bullet whose id could not be kept."""

    was: str
    id: str


class NotImported(Localizable):
    """A bullet of the file that could not be one here: which one it is (from 1), and why."""

    number: int
    message: Text


class Imported(Localizable):
    """What came of a file: the ids of the bullets that are active now, the changes that wait for review, how many bullets
    the playbook held already, active or waiting, and were not added again, which ids are new, what was not taken, the lines that are part of no bullet, which of the active ones hold characters that nobody sees,
    and from how many texts secrets were taken out."""

    form: PlaybookForm
    added: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()
    held: int = 0
    renumbered: tuple[Renumbered, ...] = ()
    refused: tuple[NotImported, ...] = ()
    left_out: tuple[int, ...] = ()
    hidden: tuple[str, ...] = ()
    redacted: int = 0


def exported(desk: PlaybookDesk, scope: PlaybookScope, form: PlaybookForm) -> str:
    """Return the playbook as a text. Only JSON contains inactive bullets."""
    bullets = desk.store(scope).load().bullets
    if form == "json":
        return json_text(bullets)
    active = tuple(each for each in bullets if each.active)
    return ace_text(active) if form == "ace" else agents_text(active)


def imported(desk: PlaybookDesk, scope: PlaybookScope, said: str, *, propose: bool = False) -> Imported:
    """Bring the bullets of a text into the playbook, all of one text or none: active, or with `propose` waiting for review.
    Raises UsageError if nothing can be read in it, and in a workspace without trust."""
    from daiku.playbook.rules.changes import check_text  # when used

    if not desk.trusted:
        raise _wrong(text("playbook.untrusted"))
    form, read = _read(said)
    wrong = {
        at: found.message for at, each in enumerate(read.bullets, 1) if (found := check_text(each.content))
    }
    taken = [each for at, each in enumerate(read.bullets, 1) if at not in wrong]
    cleaned = [_clean(each, desk) for each in taken]
    store = desk.store(scope)
    new = _find_new(
        [each.model_copy(update={"content": storable(each.content)}) for each in cleaned],
        scope,
        lambda: _held(store),
    )
    taken, kept = list(compress(taken, new)), list(compress(cleaned, new))
    named = assign_ids(kept, scope, lambda name: store.get(name) is not None)
    wanted = [_addition(each, scope) for each in named]
    with desk.journal.database.transaction():
        made = [store.propose(each) if propose else done(store.apply(each)) for each in wanted]
    names = [(was.id, now.bullet_id) for was, now in zip(taken, made, strict=True)]
    active = [each for each in made if each.status == "applied"]
    return Imported(
        form=form,
        added=tuple(each.bullet_id for each in active),
        proposed=tuple(each.id for each in made if each.status == "proposed"),
        held=new.count(False),
        renumbered=tuple(Renumbered(was=was, id=now) for was, now in names if was and was != now),
        refused=tuple(NotImported(number=at, message=why) for at, why in wrong.items()),
        left_out=read.left_out,
        hidden=tuple(each.bullet_id for each in active if _hides(each.content)),
        redacted=sum(_said(was) != _said(now) for was, now in zip(taken, kept, strict=True)),
    )


def _held(store: PlaybookStore) -> Iterator[tuple[str, str]]:
    """Yield the sections and texts of the bullets that are active or wait for review."""
    yield from ((each.section, each.content) for each in store.load().bullets if each.active)
    yield from ((each.section, each.content) for each in store.deltas("proposed") if each.type == "add")


def _addition(bullet: Bullet, scope: PlaybookScope) -> Delta:
    """Build the change that adds a bullet with its id, its counters, and its times."""
    return Delta(
        id="",
        type="add",
        scope=scope,
        section=bullet.section,
        content=bullet.content,
        keywords=bullet.keywords,
        bullet_id=bullet.id,
        origin="import",
        after=(bullet,),
    )


def _hides(content: str) -> bool:
    return drop_hidden(content) != content


def _said(bullet: Bullet) -> tuple[str, tuple[str, ...]]:
    return bullet.content, bullet.keywords


def file_text(path: Path) -> str:
    """Return the text of a file. Raises UsageError."""
    try:
        if path.exists() and not path.is_file():
            raise _wrong(text("playbook.file_no_file", path=str(path)))
        if path.stat().st_size > LARGEST:
            raise _wrong(text("playbook.file_large", path=str(path), most=LARGEST))
        return text_of(path.read_bytes(), str(path))
    except (OSError, ValueError) as wrong:
        why = wrong.strerror if isinstance(wrong, OSError) else ""
        raise _wrong(text("playbook.file_unread", path=str(path), why=why or str(wrong))) from None


def text_of(data: bytes, name: str) -> str:
    """Decode what was read from `name`. Raises UsageError."""
    if len(data) > LARGEST:
        raise _wrong(text("playbook.file_large", path=name, most=LARGEST))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _wrong(text("playbook.file_utf8", path=name)) from None


async def find_review_reason(file: Path, folder: Path, *, trusted: bool) -> ReviewReason | None:
    """Return why lessons of `file` wait for review in the playbook of `folder`; None if they do not.

    `trusted`: the user trusts the folder."""
    places = _places(file)
    if await _is_of_repository(*places):
        return "of_repository"
    top = _top(folder)
    came_with_it = any(place.is_relative_to(top) for place in places)
    return "untrusted_folder" if came_with_it and not trusted else None


def _places(file: Path) -> tuple[Path, Path]:
    """Return the path by which a file is named, and its real path."""
    return file.absolute(), file.resolve()


def _top(folder: Path) -> Path:
    """Return the root of the repository that contains a folder; without a repository the folder itself."""
    real = folder.resolve()
    return next((up for up in (real, *real.parents) if os.path.lexists(up / ".git")), real)


async def _is_of_repository(*places: Path) -> bool:
    """Return True if a repository tracks a file at one of the places, or if git cannot tell."""
    from daiku.tools.git.ownrun import run_git  # when used

    for place in places:
        if not may_be_repository(place.parent):
            continue
        done = await run_git(["ls-files", "--error-unmatch", "--", f":(literal){place.name}"], place.parent)
        if done.code != _NOT_HELD:
            return True
    return False


_NOT_HELD = 1
"""Exit code of git for a file that the repository does not track."""


def _read(said: str) -> tuple[PlaybookForm, ReadText]:
    """Return the form of a text, and what it contains. Raises UsageError."""
    start = said.removeprefix("\ufeff").lstrip()
    try:
        if is_ace(said):
            form, read = "ace", read_ace(said)
        elif start.startswith(("[", "{")):
            form, read = "json", read_json(said)
        else:
            form, read = "agents", read_agents(said)
    except UnreadableText as wrong:
        raise (_wrong(text("playbook.file_json", why=wrong.place)) if wrong.place else _nothing()) from None
    if not read.bullets and start and form != "json":
        raise _nothing()
    return form, read


def _nothing() -> UsageError:
    return _wrong(text("playbook.file_nothing"), text("playbook.file_forms"))


def _clean(bullet: Bullet, desk: PlaybookDesk) -> Bullet:
    """Return the bullet without secrets, and with only those times that look like times."""
    times = {name: value for name in ("created_at", "updated_at") if (value := _time(getattr(bullet, name)))}
    return bullet.model_copy(
        update={
            "created_at": "",
            "updated_at": "",
            **times,
            "helpful": min(bullet.helpful, MOST_COUNTED),
            "harmful": min(bullet.harmful, MOST_COUNTED),
            "section": section_name(desk.redact(bullet.section)),
            "content": desk.redact(bullet.content),
            "keywords": tuple(map(desk.redact, bullet.keywords)),
        }
    )


def _time(said: str) -> str:
    return said if len(said) <= 40 and all(char in "0123456789-:.TZ+" for char in said) else ""


def _wrong(message: Text, hint: Text = NO_TEXT) -> UsageError:
    return UsageError(Failure(kind="usage", message=message, hint=hint))


def _find_new(
    bullets: Sequence[Bullet], scope: PlaybookScope, held: Callable[[], Iterable[tuple[str, str]]]
) -> tuple[bool, ...]:
    """Return for each bullet whether it is new.

    A bullet without an id of such a playbook is not new if one of `held` (sections and texts) has the same text in the
    same section. A bullet with such an id is new."""
    anonymous = [id_parts(each.id, scope) is None for each in bullets]
    known = {_words(*each) for each in held()} if any(anonymous) else set[tuple[tuple[str, ...], str]]()
    return tuple(
        not (nameless and _words(each.section, each.content) in known)
        for each, nameless in zip(bullets, anonymous, strict=True)
    )


def _words(section: str, content: str) -> tuple[tuple[str, ...], str]:
    """Normalize the spelling of a section and the white space of a text."""
    return section_words(section), " ".join(content.split())


def assign_ids(
    bullets: Sequence[Bullet], scope: PlaybookScope, is_taken: Callable[[str], bool]
) -> tuple[Bullet, ...]:
    """Return the bullets with their final ids.

    An id that is taken, occurs twice, or does not belong to this playbook is replaced by a number above all others of
    its slug in the text, so that it takes none of theirs."""
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

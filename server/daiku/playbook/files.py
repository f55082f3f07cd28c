"""Import and export of playbooks as files in three forms."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from daiku.domain.base import Localizable, Wire
from daiku.domain.errors import UsageError
from daiku.domain.playbook import Bullet, Delta, PlaybookScope
from daiku.playbook.desk import PlaybookDesk, build_usage_error, require_applied
from daiku.playbook.rules.sections import (
    MOST_COUNTED,
    build_slug,
    format_bullet_id,
    parse_bullet_id,
    split_section,
)
from daiku.playbook.rules.textform import (
    ReadText,
    UnreadableText,
    clean_section_name,
    format_ace,
    format_agents,
    format_json,
    is_ace,
    read_ace,
    read_agents,
    read_json,
)
from daiku.playbook.tables import replace_unstorable
from daiku.texts.rules.visible import drop_hidden
from daiku.texts.text import Text, text
from daiku.workspace.repository import may_be_repository

if TYPE_CHECKING:
    from daiku.playbook.store import PlaybookStore

PlaybookForm: TypeAlias = Literal["ace", "json", "agents"]
ReviewReason: TypeAlias = Literal["of_repository", "untrusted_folder", "of_anybody"]
"""Reasons why the lessons of a file need review.

The file is tracked by a repository, so others may have written it; it came with an untrusted folder; or it
was read from standard input.
"""
LARGEST = 64_000_000
"""Maximum size of a file in bytes."""


class Renumbered(Wire):
    """A bullet whose id changed."""

    was: str
    id: str


class NotImported(Localizable):
    """A bullet that was not imported: its number in the file (from 1), and the reason."""

    number: int
    message: Text


class Imported(Localizable):
    """Result of an import.

    `added`: ids of new active bullets; `proposed`: ids of changes that need review; `held`: number of bullets
    that the playbook had already; `renumbered`: changed ids; `refused`: bullets that were not imported;
    `left_out`: lines without a bullet; `hidden`: active bullets with hidden characters; `redacted`: number of
    texts with removed secrets.
    """

    form: PlaybookForm
    added: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()
    held: int = 0
    renumbered: tuple[Renumbered, ...] = ()
    refused: tuple[NotImported, ...] = ()
    left_out: tuple[int, ...] = ()
    hidden: tuple[str, ...] = ()
    redacted: int = 0


def export_playbook(desk: PlaybookDesk, scope: PlaybookScope, form: PlaybookForm) -> str:
    """Return the playbook as a text. Only JSON contains inactive bullets."""
    bullets = desk.store(scope).load().bullets
    if form == "json":
        return format_json(bullets)
    active = tuple(each for each in bullets if each.active)
    return format_ace(active) if form == "ace" else format_agents(active)


def import_playbook(
    desk: PlaybookDesk, scope: PlaybookScope, content: str, *, propose: bool = False
) -> Imported:
    """Import the bullets of a text, all or none: active, or with `propose` pending.

    Raises UsageError if the text contains none, and in an untrusted workspace.
    """
    from daiku.playbook.rules.changes import check_text  # when used

    if not desk.trusted:
        raise build_usage_error(text("playbook.untrusted"))
    form, read = _parse(content)
    refusals = {
        at: refusal.message
        for at, each in enumerate(read.bullets, 1)
        if (refusal := check_text(each.content))
    }
    accepted = [each for at, each in enumerate(read.bullets, 1) if at not in refusals]
    cleaned = [_redact(each, desk) for each in accepted]
    store = desk.store(scope)
    is_new = _find_new(
        [each.model_copy(update={"content": replace_unstorable(each.content)}) for each in cleaned],
        scope,
        lambda: _list_texts(store),
    )
    accepted, new_bullets = list(compress(accepted, is_new)), list(compress(cleaned, is_new))
    numbered = assign_ids(new_bullets, scope, lambda name: store.get(name) is not None)
    additions = [_build_addition(each, scope) for each in numbered]
    with desk.journal.database.transaction():
        changes = [
            store.propose(each) if propose else require_applied(store.apply(each)) for each in additions
        ]
    names = [(was.id, now.bullet_id) for was, now in zip(accepted, changes, strict=True)]
    active = [each for each in changes if each.status == "applied"]
    return Imported(
        form=form,
        added=tuple(each.bullet_id for each in active),
        proposed=tuple(each.id for each in changes if each.status == "proposed"),
        held=is_new.count(False),
        renumbered=tuple(Renumbered(was=was, id=now) for was, now in names if was and was != now),
        refused=tuple(NotImported(number=at, message=why) for at, why in refusals.items()),
        left_out=read.left_out,
        hidden=tuple(each.bullet_id for each in active if _has_hidden(each.content)),
        redacted=sum(
            _get_texts(was) != _get_texts(now) for was, now in zip(accepted, new_bullets, strict=True)
        ),
    )


def _list_texts(store: PlaybookStore) -> Iterator[tuple[str, str]]:
    """Yield the sections and texts of active and pending bullets."""
    yield from ((each.section, each.content) for each in store.load().bullets if each.active)
    yield from ((each.section, each.content) for each in store.deltas("proposed") if each.type == "add")


def _build_addition(bullet: Bullet, scope: PlaybookScope) -> Delta:
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


def _has_hidden(content: str) -> bool:
    return drop_hidden(content) != content


def _get_texts(bullet: Bullet) -> tuple[str, tuple[str, ...]]:
    return bullet.content, bullet.keywords


def read_file(path: Path) -> str:
    """Return the text of a file. Raises UsageError."""
    try:
        if path.exists() and not path.is_file():
            raise build_usage_error(text("playbook.file_no_file", path=str(path)))
        if path.stat().st_size > LARGEST:
            raise build_usage_error(text("playbook.file_large", path=str(path), most=LARGEST))
        return decode_text(path.read_bytes(), str(path))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else ""
        raise build_usage_error(text("playbook.file_unread", path=str(path), why=why or str(error))) from None


def decode_text(data: bytes, name: str) -> str:
    """Decode the content of `name`. Raises UsageError."""
    if len(data) > LARGEST:
        raise build_usage_error(text("playbook.file_large", path=name, most=LARGEST))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise build_usage_error(text("playbook.file_utf8", path=name)) from None


async def find_review_reason(file: Path, folder: Path, *, trusted: bool) -> ReviewReason | None:
    """Return why lessons of `file` wait for review in the playbook of `folder`; None if they do not.

    `trusted`: the user trusts the folder.
    """
    places = _get_paths(file)
    if await _is_tracked(*places):
        return "of_repository"
    top = _find_root(folder)
    came_with_it = any(place.is_relative_to(top) for place in places)
    return "untrusted_folder" if came_with_it and not trusted else None


def _get_paths(file: Path) -> tuple[Path, Path]:
    """Return the path by which a file is named, and its real path."""
    return file.absolute(), file.resolve()


def _find_root(folder: Path) -> Path:
    """Return the root of the repository that contains a folder; without a repository the folder itself."""
    real = folder.resolve()
    return next((up for up in (real, *real.parents) if os.path.lexists(up / ".git")), real)


async def _is_tracked(*places: Path) -> bool:
    """Return True if a repository tracks a file at one of the places, or git cannot tell."""
    from daiku.tools.git.ownrun import run_git  # when used

    for place in places:
        if not may_be_repository(place.parent):
            continue
        result = await run_git(["ls-files", "--error-unmatch", "--", f":(literal){place.name}"], place.parent)
        if result.code != _UNTRACKED:
            return True
    return False


_UNTRACKED = 1
"""Exit code of git for a file that the repository does not track."""


def _parse(content: str) -> tuple[PlaybookForm, ReadText]:
    """Return the form of a text, and its contents. Raises UsageError."""
    start = content.removeprefix("\ufeff").lstrip()
    try:
        if is_ace(content):
            form, read = "ace", read_ace(content)
        elif start.startswith(("[", "{")):
            form, read = "json", read_json(content)
        else:
            form, read = "agents", read_agents(content)
    except UnreadableText as error:
        raise (
            build_usage_error(text("playbook.file_json", why=error.place))
            if error.place
            else _refuse_empty_file()
        ) from None
    if not read.bullets and start and form != "json":
        raise _refuse_empty_file()
    return form, read


def _refuse_empty_file() -> UsageError:
    return build_usage_error(text("playbook.file_nothing"), text("playbook.file_forms"))


def _redact(bullet: Bullet, desk: PlaybookDesk) -> Bullet:
    """Return the bullet without secrets and invalid times."""
    times = {
        name: value for name in ("created_at", "updated_at") if (value := _check_time(getattr(bullet, name)))
    }
    return bullet.model_copy(
        update={
            "created_at": "",
            "updated_at": "",
            **times,
            "helpful": min(bullet.helpful, MOST_COUNTED),
            "harmful": min(bullet.harmful, MOST_COUNTED),
            "section": clean_section_name(desk.redact(bullet.section)),
            "content": desk.redact(bullet.content),
            "keywords": tuple(map(desk.redact, bullet.keywords)),
        }
    )


def _check_time(time: str) -> str:
    return time if len(time) <= 40 and all(char in "0123456789-:.TZ+" for char in time) else ""


def _find_new(
    bullets: Sequence[Bullet], scope: PlaybookScope, list_held: Callable[[], Iterable[tuple[str, str]]]
) -> tuple[bool, ...]:
    """Return for each bullet whether its id is of this scope, or its section and text are new."""
    anonymous = [parse_bullet_id(each.id, scope) is None for each in bullets]
    known_texts = (
        {_normalize(*each) for each in list_held()} if any(anonymous) else set[tuple[tuple[str, ...], str]]()
    )
    return tuple(
        not (nameless and _normalize(each.section, each.content) in known_texts)
        for each, nameless in zip(bullets, anonymous, strict=True)
    )


def _normalize(section: str, content: str) -> tuple[tuple[str, ...], str]:
    """Normalize the spelling of a section and the white space of a text."""
    return split_section(section), " ".join(content.split())


def assign_ids(
    bullets: Sequence[Bullet], scope: PlaybookScope, is_taken: Callable[[str], bool]
) -> tuple[Bullet, ...]:
    """Return the bullets with their final ids.

    An id that is taken, repeated, or of another scope is replaced by a number above all others of its slug in
    the text.
    """
    last = Counter[str]()
    for bullet in bullets:
        if (parts := parse_bullet_id(bullet.id, scope)) is not None:
            last[parts[0]] = max(last[parts[0]], parts[1])
    assigned: set[str] = set()
    numbered: list[Bullet] = []
    for bullet in bullets:
        parts = parse_bullet_id(bullet.id, scope)
        name = bullet.id
        if parts is None or name in assigned or is_taken(name):
            slug = build_slug(bullet.section, scope) if parts is None else parts[0]
            last[slug] += 1
            while is_taken(name := format_bullet_id(slug, last[slug])):
                last[slug] += 1
        assigned.add(name)
        numbered.append(bullet.model_copy(update={"id": name}))
    return tuple(numbered)

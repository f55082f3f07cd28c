"""An item of GitLab as it stands when it is claimed: its text, who is believed, and what may be pushed."""

from __future__ import annotations

from collections.abc import Iterable

from daiku.core.work.instructions import within_room, without_instructions
from daiku.domain.items.forge import ForgeRefusal, ItemText, Said
from daiku.domain.items.item import ItemKey
from daiku.texts.text import text
from daiku.work.answers import moment, refused
from daiku.work.gitlab.calls import Calls, path_of
from daiku.work.gitlab.people import DEVELOPER, Labelling, People
from daiku.work.gitlab.shapes import Item, Member, Note, Project
from daiku.work.source import Strip

MAX_BODY = 200_000
"""Characters of the longest text that is worked."""


async def read_item(
    calls: Calls, people: People, key: ItemKey, label: str, strip: Strip
) -> ItemText | ForgeRefusal:
    """The item, or why it is not worked."""
    item = await calls.get(Item, path_of(key))
    if isinstance(item, ForgeRefusal):
        return refused("gone", text("gitlab.gone", item=str(key))) if item.kind == "gone" else item
    project = await calls.get(Project, "")
    if isinstance(project, ForgeRefusal):
        return project
    if (why := _not_open(key, item, project)) is not None:
        return why
    head = await _pushed_to(calls, people, key, item, project)
    if isinstance(head, ForgeRefusal):
        return head
    labelling = await people.last_labelling(key, item, label)
    if isinstance(labelling, ForgeRefusal):
        return labelling
    if labelling.by is None:
        return refused("untrusted", text("gitlab.untrusted", label=label))
    return await _with_text(calls, people, key, item, project, labelling, head, strip)


async def _with_text(
    calls: Calls,
    people: People,
    key: ItemKey,
    item: Item,
    project: Project,
    labelling: Labelling,
    head: str,
    strip: Strip,
) -> ItemText | ForgeRefusal:
    """The item with its text and comments; `head` is the project in which its branch lies, if that is another."""
    body, hidden = strip(item.description or "")
    if len(body) > MAX_BODY:
        return refused("too_large", text("gitlab.too_large", item=str(key), most=MAX_BODY))
    notes = await calls.every(Note, f"{path_of(key)}/notes", {"sort": "asc", "order_by": "created_at"})
    if isinstance(notes, ForgeRefusal):
        return notes
    stood = await people.stood_since(labelling.time, notes)
    if isinstance(stood, ForgeRefusal):
        return stood
    said = await said_in(people, notes, strip)
    if isinstance(said, ForgeRefusal):
        return said
    match without_instructions(body, stood, said[0]):
        case "empty":
            return refused("empty", text("gitlab.empty", item=str(key)))
        case "untrusted":
            return refused("untrusted", text("gitlab.edited", item=str(key)))
        case None:
            pass
    return ItemText(
        key=key,
        title=item.title,
        body=body,
        author=item.author.username if item.author else "",
        url=item.web_url,
        body_trusted=stood,
        comments=within_room(said[0]),
        hidden=hidden or said[1],
        clone_url=project.http_url_to_repo,
        default=project.default_branch or "",
        base=item.target_branch or project.default_branch or "",
        head=item.source_branch,
        head_commit=(item.sha or "") if item.source_branch else "",
        head_repository=head,
        # GitLab moves the item's own time at most once a minute: a comment may be newer.
        claimed_at=max((item.updated_at, *(note.created_at for note in notes)), key=moment),
    )


async def said_in(
    people: People, notes: Iterable[Note], strip: Strip
) -> tuple[tuple[Said, ...], bool] | ForgeRefusal:
    """The comments of people, ours and GitLab's own left out, and whether something in them was hidden."""
    found: list[Said] = []
    any_hidden = False
    for note in notes:
        if note.system or people.is_ours(note):
            continue
        believed = await people.writes(note.author)
        if isinstance(believed, ForgeRefusal):
            return believed
        shown, hidden = strip(note.body or "")
        any_hidden = any_hidden or hidden
        at = note.position
        found.append(
            Said(
                id=str(note.id),
                author=note.author.username if note.author else "",
                text=shown,
                time=note.created_at,
                trusted=believed,
                path=(at.new_path or at.old_path or "") if at else "",
                line=(at.new_line or at.old_line or 0) if at else 0,
            )
        )
    return tuple(sorted(found, key=lambda said: moment(said.time))), any_hidden


def _not_open(key: ItemKey, item: Item, project: Project) -> ForgeRefusal | None:
    if item.moved_to_id is not None:
        return refused("moved", text("gitlab.moved", item=str(key)))
    if project.archived:
        return refused("archived", text("gitlab.archived", name=key.repository))
    if item.state != "opened":
        return refused("closed", text("gitlab.closed", item=str(key)))
    return None


async def _pushed_to(
    calls: Calls, people: People, key: ItemKey, item: Item, project: Project
) -> str | ForgeRefusal:
    """The project in which the branch of a request lies, where that is another; a refusal where we may not push."""
    may = await _may_push(calls, people, project, "")
    if isinstance(may, ForgeRefusal):
        return may
    elsewhere = key.kind == "request" and item.source_project_id != project.id
    if not elsewhere:
        return "" if may else refused("forbidden", text("gitlab.no_push", name=key.repository))
    if item.source_project_id is None:
        return refused("gone", text("gitlab.no_source", item=str(key)))
    source = await calls.get(Project, f"//projects/{item.source_project_id}")
    if isinstance(source, ForgeRefusal):
        return source
    if source.archived:
        return refused("archived", text("gitlab.archived", name=source.path_with_namespace))
    there = await _may_push(calls, people, source, f"//projects/{source.id}")
    if isinstance(there, ForgeRefusal):
        return there
    if not (there or (item.allow_collaboration and may)):
        return refused("forbidden", text("gitlab.no_push", name=source.path_with_namespace))
    return source.path_with_namespace


async def _may_push(calls: Calls, people: People, project: Project, place: str) -> bool | ForgeRefusal:
    """Whether we may push to `project`, which is at `place`. Administrators are members of nothing; where GitLab does not
    say what we may, git is told when it pushes."""
    found = await calls.get(Member, f"{place}/members/all/{people.me.id}")
    if not isinstance(found, ForgeRefusal):
        return found.access_level >= DEVELOPER
    if found.kind != "gone":
        return found
    return people.me.is_admin or project.permissions is None or project.permissions.level >= DEVELOPER

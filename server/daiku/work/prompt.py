"""The request of an item's run: words of trusted people as they are, everything else fenced as data (R2.70–R2.73)."""

from __future__ import annotations

from daiku.agents.coding.item_request import ItemVariables
from daiku.core.text.truncate import fence_as_data, truncate_middle
from daiku.domain.base import Frozen
from daiku.prompts import render
from daiku.work.record import Feedback, ItemRecord

MOST_BODY = 30_000
MOST_COMMENT = 6_000
MOST_COMMENTS = 40
"""The latest ones are told."""


class ItemComment(Frozen):
    """One comment; `trusted`: its author may decide here, and it stands as it did when the item was claimed."""

    author: str
    text: str
    trusted: bool = False


class ItemPrompt(Frozen):
    """An item as its run is told of it. `instructions` are believed, `title` and `data` are not."""

    item: str
    title: str
    branch: str
    is_request: bool = False
    base: str = ""
    asked_by: str = ""
    instructions: str = ""
    data: str = ""
    comments: tuple[ItemComment, ...] = ()
    feedback: tuple[Feedback, ...] = ()


def prompt_of(record: ItemRecord) -> ItemPrompt:
    """Return the item as its run is told of it; a later round has the item's text in its session already."""
    claim, again = record.claim, bool(record.facts.rounds and record.shown.session_id)
    assert claim is not None, "an item is read before it is worked"
    trusted = claim.body_trusted
    return ItemPrompt(
        item=record.item,
        title=claim.title,
        branch=record.shown.branch,
        is_request=record.key.kind == "request",
        base=claim.base,
        asked_by=claim.author,
        instructions=claim.body if trusted and not again else "",
        data=claim.body if not trusted and not again else "",
        comments=()
        if again
        else tuple(
            ItemComment(author=said.author, text=said.text, trusted=said.trusted) for said in claim.comments
        ),
        feedback=record.facts.feedback,
    )


def item_prompt(told: ItemPrompt) -> str:
    """The request of the item's run, in the language of the prompts that are active."""
    latest = told.comments[-MOST_COMMENTS:]
    about = "\n\n".join(part for part in (told.title, told.data) if part)
    variables = ItemVariables(
        item=_name(told.item),
        is_request=told.is_request,
        asked_by=_name(told.asked_by),
        branch=_name(told.branch),
        base=_name(told.base),
        instructions=truncate_middle(told.instructions, MOST_BODY),
        data=fence_as_data(truncate_middle(about, MOST_BODY)) if about else "",
        comments=tuple((_name(c.author), truncate_middle(c.text, MOST_COMMENT)) for c in latest if c.trusted),
        others=tuple((_name(c.author), _data(c.text)) for c in latest if not c.trusted),
        feedback=tuple(
            (_name(f.name), truncate_middle(f.text, MOST_COMMENT) if f.trusted else _data(f.text))
            for f in told.feedback
        ),
    )
    return render("work/item", variables).strip()


def wording_of(prompt: ItemPrompt) -> str:
    """Return the users' own words in the prompt of an item: the feedback on it, or its title, text, and comments."""
    texts = [feedback.text for feedback in prompt.feedback]
    comments = [comment.text for comment in prompt.comments if comment.trusted]
    return "\n".join(texts or [prompt.title, prompt.instructions, prompt.data, *comments])


def _data(words: str) -> str:
    return fence_as_data(truncate_middle(words, MOST_COMMENT))


def _name(words: str) -> str:
    """A name on one line, which cannot begin a fence of data."""
    return " ".join(words.split()).replace("<", "")[:200]

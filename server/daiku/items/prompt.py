"""The request of an item's run: words of trusted people as they are, everything else fenced as data (R2.70–R2.73)."""

from __future__ import annotations

from daiku.domain.items.forge import ItemText, Said
from daiku.items.record import ItemRecord
from daiku.prompts import render
from daiku.team.coding.item_request import ItemVariables
from daiku.texts.rules.truncate import fence_as_data, truncate_middle

MOST_BODY = 30_000
MOST_COMMENT = 6_000
MOST_COMMENTS = 40
"""The latest comments that are in the request."""


def item_prompt(record: ItemRecord) -> str:
    """Return the request of the item's run, in the language of the active prompts."""
    claim = _claim_of(record)
    body, comments = _text_of(record)
    instructions, data = (body, "") if claim.body_trusted else ("", body)
    about = "\n\n".join(part for part in (claim.title, data) if part)
    latest = comments[-MOST_COMMENTS:]
    variables = ItemVariables(
        item=_name(record.item),
        is_request=record.key.kind == "request",
        asked_by=_name(claim.author),
        branch=_name(record.shown.branch),
        base=_name(claim.base),
        instructions=truncate_middle(instructions, MOST_BODY),
        data=fence_as_data(truncate_middle(about, MOST_BODY)) if about else "",
        comments=tuple((_name(c.author), truncate_middle(c.text, MOST_COMMENT)) for c in latest if c.trusted),
        others=tuple((_name(c.author), _data(c.text)) for c in latest if not c.trusted),
        feedback=tuple(
            (_name(f.name), truncate_middle(f.text, MOST_COMMENT) if f.trusted else _data(f.text))
            for f in record.facts.feedback
        ),
    )
    return render("work/item", variables).strip()


def wording_of(record: ItemRecord) -> str:
    """Return the users' own words in the request: the feedback on the item, or its title, text, and comments."""
    texts = [feedback.text for feedback in record.facts.feedback]
    body, comments = _text_of(record)
    said = [comment.text for comment in comments if comment.trusted]
    return "\n".join(texts or [_claim_of(record).title, body, *said])


def _claim_of(record: ItemRecord) -> ItemText:
    assert record.claim is not None, "an item is read before it is worked"
    return record.claim


def _text_of(record: ItemRecord) -> tuple[str, tuple[Said, ...]]:
    """Return the item's text and comments; a later round has them in its session already."""
    if record.facts.rounds and record.shown.session_id:
        return "", ()
    claim = _claim_of(record)
    return claim.body, claim.comments


def _data(words: str) -> str:
    return fence_as_data(truncate_middle(words, MOST_COMMENT))


def _name(words: str) -> str:
    """Return a name on one line, which cannot begin a fence of data."""
    return " ".join(words.split()).replace("<", "")[:200]

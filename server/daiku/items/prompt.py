"""The request of an item's run: trusted people's text as instructions, everything else fenced as data."""

from __future__ import annotations

from daiku.domain.items.forge import ItemText, Said
from daiku.items.record import ItemRecord
from daiku.prompts import render
from daiku.team.coding.item_request import ItemVariables
from daiku.texts.rules.truncate import fence_as_data, truncate_middle

MOST_BODY = 30_000
"""Maximum characters of an item's text in the request."""
MOST_COMMENT = 6_000
"""Maximum characters of a comment in the request."""
MOST_COMMENTS = 40
"""Maximum number of comments in the request; the latest are used."""


def render_item_prompt(record: ItemRecord) -> str:
    """Return the request of the item's run, in the language of the active prompts."""
    claim = _require_claim(record)
    body, comments = _select_text(record)
    instructions, data = (body, "") if claim.body_trusted else ("", body)
    subject = "\n\n".join(part for part in (claim.title, data) if part)
    latest = comments[-MOST_COMMENTS:]
    variables = ItemVariables(
        item=_to_name(record.item),
        is_request=record.key.kind == "request",
        asked_by=_to_name(claim.author),
        branch=_to_name(record.shown.branch),
        base=_to_name(claim.base),
        instructions=truncate_middle(instructions, MOST_BODY),
        data=fence_as_data(truncate_middle(subject, MOST_BODY)) if subject else "",
        comments=tuple(
            (_to_name(c.author), truncate_middle(c.text, MOST_COMMENT)) for c in latest if c.trusted
        ),
        others=tuple((_to_name(c.author), _fence(c.text)) for c in latest if not c.trusted),
        feedback=tuple(
            (_to_name(f.name), truncate_middle(f.text, MOST_COMMENT) if f.trusted else _fence(f.text))
            for f in record.facts.feedback
        ),
    )
    return render("work/item", variables).strip()


def collect_wording(record: ItemRecord) -> str:
    """Return the users' own words: the round's feedback, or the item's title, text, and comments."""
    texts = [feedback.text for feedback in record.facts.feedback]
    body, comments = _select_text(record)
    comment_texts = [comment.text for comment in comments if comment.trusted]
    return "\n".join(texts or [_require_claim(record).title, body, *comment_texts])


def _require_claim(record: ItemRecord) -> ItemText:
    assert record.claim is not None, "an item is read before it is worked"
    return record.claim


def _select_text(record: ItemRecord) -> tuple[str, tuple[Said, ...]]:
    """Return the item's text and comments; a later round has them in its session already."""
    if record.facts.rounds and record.shown.session_id:
        return "", ()
    claim = _require_claim(record)
    return claim.body, claim.comments


def _fence(text: str) -> str:
    return fence_as_data(truncate_middle(text, MOST_COMMENT))


def _to_name(text: str) -> str:
    """Return a name on one line that cannot start a data fence."""
    return " ".join(text.split()).replace("<", "")[:200]

"""Checks of an item: trusted instructions, comments that only agree, and the verification of a finished run."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from daiku.domain.items.forge import Said
from daiku.domain.runs import RunResult, UnverifiedReason
from daiku.domain.work.plans import Plan
from daiku.team.rules.proof.evidence import Evidence
from daiku.team.rules.proof.placeholders import select_new_leftovers
from daiku.texts.rules.patterns import lazy
from daiku.texts.rules.truncate import fence_as_data
from daiku.texts.text import text

MOST_UNFINISHED = 20
"""Maximum number of unfinished places in one prompt."""


def list_unfinished(evidence: Evidence, plan: Plan | None) -> tuple[str, ...]:
    """Return the recorded unfinished work: placeholder lines, and steps that are not completed."""
    lines = (f"{leftover.path}: {leftover.text}" for leftover in select_new_leftovers(evidence.leftovers))
    steps = (step.name for step in (plan.steps if plan is not None else ()) if step.status != "completed")
    return (*lines, *steps)[:MOST_UNFINISHED]


def mark_failing(result: RunResult, tests: Sequence[str]) -> RunResult:
    """Mark the result as unverified if tests failed when any run of the item last ran them."""
    if result.status != "completed" or not tests:
        return result
    reasons = tuple(
        UnverifiedReason(
            kind="last_check_failed", subject=test, message=text("work.test_failed", command=test)
        )
        for test in tests
    )
    return result.model_copy(update={"status": "completed_unverified", "reasons": reasons})


def render_verification_prompt(unfinished: Sequence[str], tests: Sequence[str]) -> str:
    """Return the prompt of the item's next run. The lines are fenced: they may contain a stranger's text."""
    parts = ["You said that the work is done. The record of it does not agree: it is not finished."]
    if unfinished:
        lines = fence_as_data("\n".join(unfinished))
        parts.append(f"Unfinished lines that you wrote, and steps of the plan:\n{lines}")
    if tests:
        lines = fence_as_data("\n".join(tests))
        parts.append(f"Tests that failed when they were run last:\n{lines}")
    parts.append(
        "Read the files that you changed once more, put right what is left, mark each step of the plan by how it "
        "stands, and run the tests again. Tests that failed before you began stay as they are. Then say in a few "
        "sentences what you changed in all, what you ran and how it ended, and what is left."
    )
    return "\n\n".join(parts)


MAX_COMMENTS = 200_000
"""Maximum characters of an item's comments together."""


def explain_missing_instructions(
    body: str, body_trusted: bool, comments: Sequence[Said]
) -> Literal["empty", "untrusted"] | None:
    """Return why there is nothing to process; None if a text or a comment is trusted."""
    if any(comment.trusted for comment in comments):
        return None
    if not body.strip():
        return "empty"
    return None if body_trusted else "untrusted"


def select_comments(comments: tuple[Said, ...]) -> tuple[Said, ...]:
    """Return the comments that fit, newest trusted ones first, so that strangers cannot crowd them out."""
    selected: set[str] = set()
    remaining, newest = MAX_COMMENTS, comments[::-1]
    for comment in sorted(newest, key=lambda comment: not comment.trusted):
        if len(comment.text) <= remaining:
            selected.add(comment.id)
            remaining -= len(comment.text)
    return tuple(comment for comment in comments if comment.id in selected)


MOST = 120
"""Maximum characters of such a comment."""
_PHRASES = frozenset(
    [
        "+1",
        "approved",
        "awesome",
        "cool",
        "excellent",
        "fantastic",
        "good job",
        "good work",
        "great",
        "great job",
        "great work",
        "lgtm",
        "looks good",
        "looks good to me",
        "looks great",
        "love it",
        "nice",
        "nice job",
        "nice one",
        "nice work",
        "ok",
        "okay",
        "perfect",
        "ship it",
        "sounds good",
        "thank you",
        "thank you so much",
        "thank you very much",
        "thanks",
        "thanks a lot",
        "thx",
        "very nice",
        "well done",
        "wonderful",
        "okです",
        "lgtmです",
        "ありがとう",
        "ありがとうございます",
        "ありがとうございました",
        "いいですね",
        "良いですね",
        "いい感じです",
        "よさそうです",
        "良さそうです",
        "問題ありません",
        "問題ないです",
        "問題なさそうです",
        "完璧です",
        "素晴らしい",
        "素晴らしいです",
        "承認します",
        "了解です",
        "了解しました",
        "お疲れ様です",
        "お疲れさまです",
        "助かります",
        "助かりました",
    ]
)
_EMOJI = frozenset("👍👏🙏🎉🚀✅✔💯❤💚💙🔥🙂😀😃😄😊😍🤩🥳👌🙌✨🚢")
_EMOJI_NAMES = lazy(
    r":(?:\+1|thumbsup|tada|heart|rocket|shipit|white_check_mark|heavy_check_mark|clap|pray|100|ok_hand|raised_hands"
    r"|sparkles|fire|smile|slightly_smiling_face):"
)
_MENTION = lazy(r"(?<![\w@])@[A-Za-z0-9][\w-]*(?:\[bot\])?")
_BETWEEN = lazy(r"[.,;:!~…\n。、！，]+|\s[-–—]\s")


def is_only_agreement(words: str) -> bool:
    """Return True if `words` contain nothing but agreement or thanks."""
    if len(words) > MOST:
        return False
    normalized = unicodedata.normalize("NFKC", _MENTION.sub(" ", _EMOJI_NAMES.sub(" 👍 ", words))).casefold()
    has_emoji = any(letter in _EMOJI for letter in normalized)
    plain = "".join(" " if c in _EMOJI or _modifies_emoji(c) else c for c in normalized)
    pieces = [" ".join(piece.split()) for piece in _BETWEEN.split(plain)]
    phrases = [piece for piece in pieces if piece]
    return bool(phrases or has_emoji) and all(
        piece in _PHRASES or _remove_blanks(piece) in _PHRASES for piece in phrases
    )


def _modifies_emoji(letter: str) -> bool:
    """Return True for a skin tone or a variation selector."""
    return "\U0001f3fb" <= letter <= "\U0001f3ff" or letter in "\ufe0e\ufe0f"


def _remove_blanks(piece: str) -> str:
    """Remove blanks from Japanese text, which is written with and without them next to Latin letters."""
    return re.sub(r"\s", "", piece) if not piece.isascii() else piece

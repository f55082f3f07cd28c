"""Recognition of comments that only agree or thank, and thus request no work."""

from __future__ import annotations

import re
import unicodedata

from daiku.texts.rules.patterns import lazy

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

"""Whether a comment on finished work only agrees or thanks: it asks for nothing, so nothing is to be worked for it."""

from __future__ import annotations

import re
import unicodedata

from daiku.texts.rules.patterns import lazy

MOST = 120
"""Characters; whoever writes more has something to say."""
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
_SIGNS = frozenset("👍👏🙏🎉🚀✅✔💯❤💚💙🔥🙂😀😃😄😊😍🤩🥳👌🙌✨🚢")
_NAMED_SIGNS = lazy(
    r":(?:\+1|thumbsup|tada|heart|rocket|shipit|white_check_mark|heavy_check_mark|clap|pray|100|ok_hand|raised_hands"
    r"|sparkles|fire|smile|slightly_smiling_face):"
)
_MENTION = lazy(r"(?<![\w@])@[A-Za-z0-9][\w-]*(?:\[bot\])?")
_BETWEEN = lazy(r"[.,;:!~…\n。、！，]+|\s[-–—]\s")


def only_agrees(words: str) -> bool:
    """Return True if `words` are nothing but agreement or thanks."""
    if len(words) > MOST:
        return False
    told = unicodedata.normalize("NFKC", _MENTION.sub(" ", _NAMED_SIGNS.sub(" 👍 ", words))).casefold()
    signs = any(each in _SIGNS for each in told)
    plain = "".join(" " if each in _SIGNS or _shapes_a_sign(each) else each for each in told)
    pieces = [" ".join(piece.split()) for piece in _BETWEEN.split(plain)]
    said = [piece for piece in pieces if piece]
    return bool(said or signs) and all(
        piece in _PHRASES or _without_blanks(piece) in _PHRASES for piece in said
    )


def _shapes_a_sign(letter: str) -> bool:
    """Skin tones and the mark that a sign is to be shown as a picture."""
    return "\U0001f3fb" <= letter <= "\U0001f3ff" or letter in "\ufe0e\ufe0f"


def _without_blanks(piece: str) -> str:
    """Japanese is written with and without blanks beside Latin letters."""
    return re.sub(r"\s", "", piece) if not piece.isascii() else piece

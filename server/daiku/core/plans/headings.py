"""Recognize the headings of a plan in English and Japanese, and replies with machine-like openings."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy
from daiku.core.text.visible import strip_invisible

_NAMES = {
    "project": r"project(?: name)?|プロジェクト(?:名)?|計画名",
    "reply": r"your reply to the human prompter|(?:あなたへの|依頼者への|ユーザーへの)?(?:ご?返答|ご?返信|ご?回答)",
    "focus": r"current focus|focus|(?:現在の)?(?:焦点|重点|フォーカス)",
    "plans": r"(?:(?:revised|updated|new|final) )?plan"
    r"|(?:(?:修正(?:した|後の|版の?)?|改訂(?:した|版の?)?|新しい|最終)の?)?(?:計画|プラン)",
    "summary": r"summary|要約|まとめ|概要",
}
_HEAD = lazy(
    r"(?P<marks>[\s#>*_■●◆・-]*)(?P<opened>[【「『\[]?)\s*(?:"
    + "|".join(f"(?P<{key}>{name})" for key, name in _NAMES.items())
    + r")\s*[*_]*[】」』\]]?[*_\s]*(?P<colon>[:：]?)[*_]*\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)


def plan_head(line: str) -> tuple[str, str] | None:
    """The part of a plan that begins on this line (`project`, `reply`, `focus`, `plans`, `summary`) and what
    stands behind its head; None for any other line. Without a colon it is one where the marks of a heading
    show it."""
    found = _HEAD.match(line)
    if found is None:
        return None
    heading = "#" in found["marks"] or found["opened"] == "【"
    if not found["colon"] and (found["rest"] or not heading):
        return None
    return next(key for key in _NAMES if found[key] is not None), found["rest"]


_MACHINE = lazy(
    r"\W*(?:(?:as|i am|i['’]m)\W+(?:just |only |simply )?(?:an?|your)\W+(?:helpful |large )?"
    r"(?:ai|a\.i\.|artificial intelligence|language model|llm)\b(?!-)"
    r"|(?:(?:私|わたし|僕)は)?(?:単なる|ただの|一つの)?(?:ai|ａｉ|人工知能|(?:大規模)?言語モデル)"
    r"(?:の?アシスタント|の?言語モデル|モデル)?(?:として|です|なので|であり|である|ですので))",
    re.IGNORECASE,
)


def sounds_like_machine(text: str) -> bool:
    """Whether a reply begins as no person would (R0.31, C0.15), in English or Japanese."""
    return _MACHINE.match(text) is not None


_ESCAPE = lazy(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")


def printable(text: str) -> str:
    """The text without terminal escapes and characters that nobody sees."""
    return strip_invisible(_ESCAPE.sub("", text))

"""In which language and manner a text is written, by its letters and sentence ends."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy

_KANA = re.compile(r"[\u3040-\u30ff]")
_LETTER = re.compile(r"[A-Za-z\u3040-\u30ff\u4e00-\u9fff]")
_POLITE = lazy(r"(?:です|ます|でした|ました|ません|でしょう|ください)(?:か|ね|よ)?[。！？!?\n]")
_PLAIN = lazy(r"(?:である|であった|だった|だ|した|する|ない|なる|れる|いる|ある|った|いた)[。！？!?\n]")
_SHARE = 0.1
_LEAST = 3


def is_japanese(text: str) -> bool:
    """Whether a text is written in Japanese: a tenth of its letters or more are kana."""
    return len(_KANA.findall(text)) > _SHARE * max(1, len(_LETTER.findall(text)))


def manner_of(text: str) -> str:
    """The manner in which the sentences of a Japanese text end, for a model; empty where it is mixed or not clear."""
    if not is_japanese(text):
        return ""
    polite, plain = len(_POLITE.findall(text)), len(_PLAIN.findall(text))
    if max(polite, plain) < _LEAST or min(polite, plain) * 3 > max(polite, plain):
        return ""
    return "敬体（です・ます）" if polite > plain else "常体（だ・である）"

"""The person's words as a rule that holds from now on: which sentences correct, and what is left of them."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy

LONGEST = 240
"""Characters of a person's words that a lesson takes."""
LEAST_WORDS, LEAST_SIGNS = 3, 6
"""Words, or signs of a text without spaces, below which a reason says nothing to who does not know what it was about."""

_OPENS = lazy(
    r"(?:no|nope|nah|wrong|stop|don'?t|do not|never|always|instead|actually|please\s+(?:don'?t|do not|never|always|use)"
    r"|not like (?:that|this)|that(?:'s| is| was) (?:wrong|not)|this is (?:wrong|not)|we (?:don'?t|do not|never|always|use)"
    r"|you (?:should|must)(?: not|n'?t)?|from now on|next time|prefer)\b"
    r"|いや|いいえ|違[うい]|ちが[うい]|そうじゃな|そうではな|駄目|だめ|ダメ|やめ|必ず|いつも|常に|絶対|今後|次から|これから",
    re.IGNORECASE,
)
"""How a correction begins."""
_RULE = lazy(
    r"\b(?:use|run|call|prefer|keep|put|write|name|avoid|add|leave|make|start|import|don'?t|do not|never|always|must|should"
    r"|instead|rather than|only|has to|have to|needs? to)\b"
    r"|使[わいうえっ]|しない|せず|するな|ではな|じゃな|代わり|代り|必ず|いつも|常に|絶対|禁止|べき|こと[。．]?$|ください|下さい|して",
    re.IGNORECASE,
)
"""What words have that say how something is to be done."""
_STEERS = lazy(
    r"\b(?:don'?t|do not|never|always|instead|rather than|must(?: not|n'?t)|should(?: not|n'?t)?|prefer|from now on|in this (?:repo|project|repository))\b"
    r"|使わな|しないで|するな|ではな[くい]|じゃな[くい]|代わり|代り|必ず|いつも|常に|絶対|禁止|べき|今後|やめ",
    re.IGNORECASE,
)
_REASONS = lazy(
    r"\b(?:must|should|has to|have to|keep|keeps|we)\b|こと|して(?:ください|下さい)|ください|下さい",
    re.IGNORECASE,
)
"""What besides says so right after a person undid something."""
_LEADING = lazy(
    r"^(?:(?:no|nope|nah|wrong|stop|actually|sorry|please|ok(?:ay)?|いや|いいえ|違う|違います|ちがう|ちがいます)(?:[\s,.!:;、。！，—–-]+|$))+",
    re.IGNORECASE,
)
_SENTENCES = lazy(r"(?<=[.!?])\s+(?=[A-Z`\"'])|(?<=[。！？])")
_SIGNS = lazy(r"[\u3040-\u30ff\u3400-\u9fff]")


def rule_words(said: str) -> str:
    """What a person gave as a reason, as one sentence or two; empty where it is too little to be a lesson."""
    plain = " ".join(said.split())
    plain = _LEADING.sub("", plain)
    sentences = [each.strip() for each in _SENTENCES.split(plain) if each.strip()]
    taken = ""
    for sentence in sentences:
        longer = f"{taken} {sentence}".strip()
        if len(longer) > LONGEST:
            break
        taken = longer
    if len(taken.split()) < LEAST_WORDS and len(_SIGNS.findall(taken)) < LEAST_SIGNS:
        return ""
    ended = taken if taken[-1:] in ".!?。！？…" else f"{taken}{'。' if _SIGNS.search(taken[-1:]) else '.'}"
    return ended[:1].upper() + ended[1:]


def standing_correction(said: str, *, opening: bool, undone: bool = False) -> str:
    """The sentences of `said` that say how something is to be done from now on; empty where there are none. `opening`:
    they count only where the whole begins as a correction does. `undone`: the person took something back just before."""
    plain = " ".join(said.split())
    if opening and _OPENS.match(plain) is None:
        return ""
    corrects = _OPENS.match(plain) is not None
    sentences = [each.strip() for each in _SENTENCES.split(_LEADING.sub("", plain)) if each.strip()]
    rules = [
        each
        for each in sentences
        if _STEERS.search(each) or (corrects and _RULE.search(each)) or (undone and _REASONS.search(each))
    ]
    return rule_words(" ".join(rules)) if rules else ""

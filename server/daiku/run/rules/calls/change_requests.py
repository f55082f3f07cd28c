"""Classify requests: an instruction is a change request unless it asks for an answer, a look, or a command.

Pure.
"""

from __future__ import annotations

import re
from typing import Literal

from daiku.texts.rules.patterns import lazy

Kind = Literal["change", "answer", "report"]
"""Purpose of a sentence. `report`: states something, such as a problem."""
_WRITING = r"(?:lists?|plan|summar(?:y|ies)|table|overview|report|diagram|outline|explanation|description|examples?|ideas?|haiku|poem|story|joke)"
_ANSWERS = (
    "explain|describe|tell|show|list|find|search|look|read|see|check|verify|confirm|"
    "review|compare|summari[sz]e|outline|analy[sz]e|investigate|inspect|examine|explore|identify|locate|trace|debug|diagnose|"
    "reproduce|profile|measure|benchmark|count|calculate|compute|print|display|cat|run|rerun|execute|test|open|think|consider|"
    "suggest|propose|recommend|plan|design|sketch|estimate|evaluate|assess|rate|discuss|clarify|elaborate|answer|say|ask|quote|"
    "reply|respond|repeat|output|echo|greet|draft|brainstorm|remember|recall|point|fetch|download|compile|guess|wait|walk|"
    "understand|learn|know|always|from now on|in (?:the )?future|next time|go (?:through|over|on)|figure out|work out|teach|(?:give|get|send) (?:me|us)|pros|difference|git|ls|"
    r"let (?:me|us) (?:know|see)|validate (?:that|whether|if)|build (?:it|(?:the|this) (?:project|app|code|docs|site|package|image))|"
    r"(?:re)?start|(?:stop|launch|serve) (?:\w+ ){0,3}?(?:server|app|service|worker|container|database|process)|"
    r"translate .* for (?:me|us)|write about|(?:write|generate|give|create|make|draw|prepare) (?:(?:me|us) )?(?:(?:an?|some|the|two|three|\d+) )?"
    rf"(?:\w+ )?{_WRITING}"
)
"""Beginnings of instructions that change no file. These verbs are few; those that change something are not."""
_POLITE = (
    r"(?>(?:(?:please|pls|kindly|now|then|also|so|just|and|or|next|first|finally|but|hi|hello|hey|ok(?:ay)?|(?:yes|great|good)(?=,)|"
    r"(?:can|could|would|will) you(?: please| mind)?|(?:i|we)(?:'d like| want| need| would like) (?:you )?to|let'?s|"
    r"(?:you|we) (?:should|must|have to|need to)|go ahead and|try to|help (?:me|us)(?: to)?|your task is to|the task is to)[,:]?\s+)*)"
)
_WONDERS = r"i (?:don't (?:understand|know|see|get)|(?:was|am) (?:wondering|curious)|wonder|see)\b"
_AUXILIARY = r"(?:is|are|was|were|has|have|had|does|do|did|will|would|should|shall|must|can|cannot|could|may|might|needs?)\b"
_FUNCTION_WORD = (
    "the|an?|this|that|these|those|it|its|i|we|you|they|he|she|there|my|our|your|their|some|any|all|every|each|"
    "both|another|other|(?:some|any|every|no)(?:thing|one|body)|no|not|in|on|at|for|from|with|without|within|instead|as|by|of|to|about|after|before|during|if|when|while|because|"
    "since|unless|until|although|though|or|nor|again|once|more|me|us|go|now|then|please|who|whose|which|what|where|how|why|whether|"
    "based|according|regarding|thank|mind|question|good|great|sounds|looks|got|thanks"
)
_READS = lazy(rf"{_POLITE}(?:(?:{_ANSWERS})(?![-\w])|{_WONDERS})", re.IGNORECASE)
_INSTRUCTS = lazy(
    rf"{_POLITE}(?:(?:don't|do not|never)\s+)?(?!(?:{_FUNCTION_WORD})\b)[a-z][a-z-]*(?=\s|$)(?!\s+{_AUXILIARY})(?P<object>.*)",
    re.IGNORECASE | re.DOTALL,
)
_QUESTION = lazy(
    r"(?:what|whats|why|how|where|which|who|whose|when (?=is|was|were|are|do|did)|is|are|was|were|does|do(?= (?:i|you|we|they)\b)|did|has|have|should|may|might|any)"
    r"\b(?! not\b)",
    re.IGNORECASE,
)
_POLITE_QUESTION = lazy(r"(?:can|could|would|will) you\b", re.IGNORECASE)
_SUBORDINATE = lazy(r"\b(?:what|why|how|where|which|who|whose|when|whether|if)\b( to\b)?", re.IGNORECASE)
_SOCIAL = lazy(
    r"\b(?:thanks|thank you|thx|perfect|well done|never mind|good job|no problem|good morning|got it|my name is|makes sense|sounds good|"
    r"looks (?:good|great|fine)|works (?:now|well|fine|great))\b|"
    r"^(?:yes|great|nice|good|cool)\b(?!.*\bbut\b)|^that's (?:right|what|it|all|fine|good)\b|"
    r"^(?:ありがとう|こんにちは|お疲れ|はい|了解|わかりました|わかった|なるほど)",
    re.IGNORECASE,
)
_LEAVES = lazy(
    r"\b(?:don't|do not|without|never) (?:chang|edit|modif|touch|apply|writ|fix)\w* "
    r"(?:anything|any (?:files?|code)|the code|it|files|code)(?: yet| now| for now| please)?\s*(?:[.,;:!?]|$)|"
    "(?<!他は)(?<!以外は)(?:変更|修正|編集)(?:せず|しないで)",
    re.IGNORECASE | re.MULTILINE,
)
LEAST_SPACES = 2
"""Spaces in a sentence that may report a problem; “me too” and “go on” have fewer."""
LAST_WORDS = 40
"""Characters at the end of a Japanese sentence that contain its verb."""
_CLAUSE = lazy(r"[,:]\s+|\s(?:and|but)\s+")
_SENTENCE = lazy(r"(?<=[.!?;])\s+|(?<=[。！？])|\n+|,?\s(?:and )?then\s")
_CODE = lazy(r"```.*?```|`[^`\n]*`", re.DOTALL)
_PASTED = lazy(r"^.*\n(?:[ \t]+(?![-*•\d\s]).*\n?)+.*$", re.MULTILINE)
"""Indented lines with the lines around them: pasted code, a log, or a stack trace."""
_OBJECT = lazy(r"\s+(?!(?:of|here|there|in|on|for|from)\b)\S")
_PRONOUN = lazy(r"\s+(?:it|them|this|that)\b", re.IGNORECASE)
_JAPANESE = lazy(r"[ぁ-ヿ]")
_JAPANESE_QUESTION = lazy(r"(?:か|の|[?？])[?？。\s]*$|^(?:何|なぜ|どう|どこ|どの|どれ|いつ|誰)")
_JAPANESE_REQUEST = lazy(
    r"(\w{1,9}?)(?:[てで](?:くださ|下さ|くれ|ほし|欲し|もらえ|いただけ|頂け)\w*|を?お願い\w*|[てで])[。！!？?\s]*$"
)
_JAPANESE_ANSWERS = lazy(
    r"(?:説明|教え|助か|見せ|示し|要約|調べ|調査|確認|実行|走らせ|列挙|一覧に|一覧を出|挙げ|指摘|比較|レビュー|読ん|読み|探し|検索|考え|提案|表示|分析|計画|評価|待っ)し?$"
)


def classify_request(request: str) -> Kind:
    """Return what `request` asks for: a change, an answer, or neither, as it only reports something."""
    if _LEAVES.search(request):
        return "answer"
    words = _PASTED.sub("", _CODE.sub("x.py", request))
    sentences = [part.strip(" -*•0123456789.)\"'") for part in _SENTENCE.split(words)]
    kinds = {_classify_sentence(sentence) for sentence in sentences if sentence}
    if "change" in kinds:
        return "change"
    return "report" if kinds == {"report"} and not _SOCIAL.search(request) else "answer"


def _classify_sentence(sentence: str) -> Kind:
    if _JAPANESE.search(sentence):
        return _classify_japanese(sentence)
    polite = _POLITE_QUESTION.search(sentence)
    if _QUESTION.match(sentence) or (sentence.endswith("?") and polite is None):
        return "answer"
    first, *later = _CLAUSE.split(sentence[polite.start() :] if polite is not None else sentence)
    if _READS.match(first):
        subordinate = _SUBORDINATE.search(sentence)
        return "change" if any(_has_instruction(clause, subordinate) for clause in later) else "answer"
    if " " in sentence and (_INSTRUCTS.match(first) or any(_has_instruction(clause) for clause in later)):
        return "change"
    is_report = sentence.count(" ") >= LEAST_SPACES and not any(map(_READS.match, later))
    return "report" if is_report else "answer"


def _has_instruction(clause: str, subordinate: re.Match[str] | None = None) -> bool:
    """Return True if a later clause of a sentence instructs.

    Its verb needs an object. In a sentence with a `subordinate` clause the object must be a pronoun: “find
    out why it fails and fix it”, but not “explain how to install and use it”.
    """
    instruction = None if _READS.match(clause) else _INSTRUCTS.match(clause)
    if instruction is None or (subordinate is not None and subordinate[1]):
        return False
    return (_OBJECT if subordinate is None else _PRONOUN).match(instruction["object"]) is not None


def _classify_japanese(sentence: str) -> Kind:
    match = _JAPANESE_REQUEST.search(sentence[-LAST_WORDS:])
    if match is not None:
        return "answer" if _JAPANESE_ANSWERS.search(match[1]) else "change"
    return "answer" if _JAPANESE_QUESTION.search(sentence) else "report"

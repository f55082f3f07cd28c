"""Requests that instruct to change the project, recognized by their verbs in English and Japanese. Pure."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy

_CHANGES = (
    "fix|repair|correct|implement|refactor|rename|remove|delete|add|update|change|replace|edit|modify|rewrite|convert|migrate|"
    "move|extract|simplify|upgrade|downgrade|bump|revert|undo|port|split|merge|inline|wrap|reformat|format|document|patch|resolve|"
    "solve|get rid of|clean up|turn|swap|adjust|adapt|extend|optimi[sz]e|translate|install|configure|enable|disable|insert|append"
)
_MAKES = (
    r"(?:make|get|have)\s+(?!sense\b|a (?:list|plan|summary|table|note)\b).{0,60}?\b"
    r"(?:pass(?:es|ing)?|work(?:s|ing)?|green|run|compile|build|return|accept|raise|use|print|faster|optional|configurable)\b"
)
_CREATES = (
    r"(?:write|create|generate|build|set up)\s+(?:\S+\s+){0,5}?"
    r"(?:(?:unit |integration )?tests?|files?|functions?|class(?:es)?|modules?|scripts?|methods?|components?|endpoints?|pages?|"
    r"projects?|apps?|commands?|fixtures?|migrations?|\S+\.[a-z]{1,5})\b"
)
_POLITE = (
    r"(?:(?:please|kindly|now|then|also|so|ok(?:ay)?|just|and|next|first|finally|but|hi|hello|hey|"
    r"(?:can|could|would|will) you(?: please)?|(?:i|we) (?:want|need|would like|'d like) (?:you )?to|i'd like you to|let'?s|"
    r"(?:you|we) (?:should|must|have to|need to)|go ahead and|try to|help me(?: to)?|your task is to|the task is to)[,:]?\s+)*"
)
_INSTRUCTION = lazy(rf"{_POLITE}(?:(?:{_CHANGES})\b|{_MAKES}|{_CREATES})", re.IGNORECASE)
_JAPANESE = lazy(
    r"(?:修正|追加|変更|削除|実装|書き換え|置き換え|移動|改名|リネーム|リファクタリング|リファクタ|更新|対応|改善|直|作成|消|変え|通るように|動くように)"
    r"(?:し|す)?て(?:ください|下さい|くれ|ほしい|欲しい|もらえ|いただけ|頂け|[。！!\s]|$)"
)
_QUESTION = lazy(
    r"(?:what|why|how|where|which|who|whose|when|is|are|was|were|does|do|did|has|have|should|may|might)\b(?! not\b)",
    re.IGNORECASE,
)
_POLITE_QUESTION = lazy(r"(?:can|could|would|will) you\b", re.IGNORECASE)
_CLAUSE = lazy(r"[,;:\n]\s*|\s(?:and|then)\s+")
_SENTENCE = lazy(r"(?<=[.!?。！？])\s*|\n+")
_CODE = lazy(r"```.*?```|`[^`\n]*`", re.DOTALL)


def asks_for_change(request: str) -> bool:
    """Return True if a sentence of `request` instructs to change something. A request in other words returns False."""
    if _JAPANESE.search(request):
        return True
    plain = _CODE.sub("x.py", request)
    return any(_instructs(sentence.strip()) for sentence in _SENTENCE.split(plain))


def _instructs(sentence: str) -> bool:
    if _QUESTION.match(sentence) or (sentence.endswith("?") and not _POLITE_QUESTION.search(sentence)):
        return False
    clauses = (clause.strip(" -*•0123456789.)\"'") for clause in _CLAUSE.split(sentence))
    return any(_INSTRUCTION.match(clause) for clause in clauses)

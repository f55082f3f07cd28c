"""Requests to run tests, a script, or a command. Only instructions whose verb and object are both known count. Pure."""

from __future__ import annotations

import re

from daiku.core.text.patterns import lazy

_CODE = lazy(r"```.*?(?:```|\Z)|`([^`\n]*)`", re.DOTALL)
_LOOKS = lazy(r"\s*(?:git|ls|ll|cat|grep|rg|find|head|tail|wc|tree|pwd|cd|echo|which|diff|curl|wget)\b")
"""Commands in place of which a model may use a tool that runs no command."""
_REPORTS = lazy(
    r"\b(?:repro(?:duc\w+)?|(?:expected|actual) (?:behaviou?r|results?|outputs?))\b|再現|期待(?:する|される)(?:動作|結果)",
    re.IGNORECASE,
)
"""Words of a bug report, whose steps are no instructions."""
_NEGATIONS = lazy(
    r"\b(?:don't|do not|never|without|no need to|not to|instead of|rather than|stop) (?:(?:re-?)?run|execut|running)"
    r"|(?:実行|走らせ|回さ|流さ)(?:し?ない|せず)",
    re.IGNORECASE,
)
_SENTENCE = lazy(r"(?<=[.!?;])\s+|(?<=[。！？])|\n+")
_CLAUSE = lazy(r",?\s(?:and )?then\s|,\s+(?:and\s+)?|\sand\s+", re.IGNORECASE)
_CONDITIONS = lazy(
    r"\b(?:if|unless|whenever|when|from now on|in (?:the )?future|next time|always|remember|optionally|"
    r"(?:after|before) (?:an?|any|each|every|you)|(?:each|every) time)\b"
    r"(?! (?:you(?:'re| are)|it(?:'s| is)|that's) (?:done|finished|ready))",
    re.IGNORECASE,
)
_CONTENTS = lazy(
    r"\b(?:to|steps?|scripts?|commands?|jobs?|targets?|buttons?|hooks?|how|why|what|which|who|whether|where|that|"
    r"can|could|should|must|will|would|may|might|explain|describe|document|mention|say|says)\b",
    re.IGNORECASE,
)
"""Words of a clause with which “and run the tests” may be no instruction: “add a target to lint and run the tests”."""
_CAN_YOU = lazy(r"(?:(?:can|could) you(?: please)?|(?:will|would) you please)\s+", re.IGNORECASE)
_POLITE = (
    r"(?:(?:please|pls|kindly|now|then|also|just|first|finally|next|ok(?:ay)?|go ahead and|try to|(?:i|we)(?:'d like| want) you to|let's)"
    r"[,:]?\s+)*+"
)
_DETERMINERS = r"(?P<determiner>(?:(?:all|the|our|my|this|that|these|those|its|every|each)\s+)*+)"
_ADJECTIVES = (
    r"(?:(?:of|the|full|whole|entire|complete|unit|integration|end-to-end|e2e|regression|smoke|acceptance|existing|new|relevant|"
    r"failing|python|backend|frontend|project's)\s+)*+"
)
_TESTS = r"(?:(?:unit)?tests?(?:[ -](?:suites?|cases?|files?|scripts?))?|suite|specs)"
_OBJECTS = (
    rf"(?:{_TESTS}|checks|benchmarks?|build|scripts?|migrations?|[\w./-]+\.(?:py|js|mjs|ts|sh|rb|php|pl)|pytest|tox|nox|jest|"
    r"vitest|(?:npm|pnpm|yarn|bun|cargo|go|mvn|gradle|dotnet|make|python3?|node) [\w./:-]+)(?![\w-])(?!\s+(?:by|past|review)\b)"
)
_INSTRUCTS = lazy(
    rf"{_POLITE}(?:(?:re-?)?(?:run|execute)\s+(?:a\s+|an\s+)?{_DETERMINERS}{_ADJECTIVES}{_OBJECTS}"
    r"|(?:run|execute)\s+(?:it|them)(?:\s+(?:again|now|once))?[.!;\s]*$"
    r"|(?:make sure|ensure|verify|check|confirm)\s+(?:that\s+)?(?:(?:all|the|our|my|of)\s+)*+"
    rf"{_ADJECTIVES}{_TESTS}\s+(?:(?:still|all|now)\s+)*+(?:pass(?:es)?|succeed|are green)\b)",
    re.IGNORECASE,
)
_JAPANESE = lazy(
    r"(?:テスト(?:スイート|ケース|一式)?|ベンチマーク|ビルド|スクリプト|マイグレーション|pytest|x\.py|(?:npm|cargo|go|make) [\w:.-]{1,30})"
    r"\s*[をの]?\s*(?:すべて|全て|全部|もう一度|再度|一度|まず|先に|ローカルで){0,2}\s*"
    r"(?:再?実行(?:を?お願い(?:します|いたします)?|し(?:て|ろ|なさい))|(?:走らせ|回し|流し)て)(?:み(?:て|ろ))?"
    r"(?:(?:ください|下さい|くれ(?:る|ますか|ませんか)?|もらえ(?:る|ますか|ませんか)|いただけますか|ほしい(?:です)?)?[。！!？?\s]*$"
    r"|[、,]?\s*(?:その)?(?:結果|出力|問題)(?:(?!理由|原因|方法|なぜ|場合)[^。]){0,20}て(?:ください|下さい)?[。！!\s]*$)"
)


def asks_for_run(request: str) -> bool:
    """Return True if `request` tells the model to run tests, a script, or a command."""
    if _NEGATIONS.search(request) or _REPORTS.search(request):
        return False
    words = _CODE.sub(_name_code, request)
    return any(_instructs(part.strip(" -*•0123456789)\"'")) for part in _SENTENCE.split(words))


def _name_code(code: re.Match[str]) -> str:
    """Return a name in place of a code span: that of a script if it may be a command to run."""
    text = code[1] or ""
    return "x.py" if text.strip() and not _LOOKS.match(text) else "that"


def _instructs(sentence: str) -> bool:
    """Return True if a clause of the sentence is an instruction to run something."""
    if _JAPANESE.search(sentence):
        return True
    question = _CAN_YOU.match(sentence) if sentence.endswith("?") else None
    if sentence.endswith("?") and question is None:
        return False
    before = ""
    for clause in _CLAUSE.split(sentence[question.end() :] if question is not None else sentence):
        found = _INSTRUCTS.match(clause)
        if found is not None and not _CONTENTS.search(before):
            if question is not None and not found["determiner"]:  # “Can you run tests in parallel?”
                return False
            return not _CONDITIONS.search(f"{before}{clause[found.end() :]}")
        before += f"{clause} "
    return False

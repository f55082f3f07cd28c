"""Lines by which a model says that code is left out (`// ... existing code ...`, `# 以下省略`): known by their form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from daiku.texts.rules.patterns import lazy


def enclosed(
    text: str,
    opening: re.Pattern[str],
    kind_of: Callable[[re.Match[str]], str],
    ends: Mapping[str, re.Pattern[str]],
) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Every opening in `text` with its end, one behind the other.

    The end of a kind matches from behind the opening on; a kind without one is whole as it is. What has no end is left
    out, and no later one of its kind is looked at: it has none either, so that many of them cost no more than one.
    """
    at, endless = 0, set[str]()
    while (found := opening.search(text, at)) is not None:
        kind = kind_of(found)
        end = found if kind not in ends else None if kind in endless else ends[kind].match(text, found.end())
        if end is None:
            endless.add(kind)
            at = found.start() + 1
        else:
            yield found, end
            at = max(end.end(), found.start() + 1)


Kind = Literal["", "dots", "words", "both"]
"""By what a line says that code is left out: dots alone, words alone that could be about something else, or both."""

_DOTS = r"(?:\.{3,}|…+|‥+|⋯+|⋮+|・{2,}|．{3,}|。{3,})"
_HINT = lazy(
    rf"{_DOTS}|unchanged|unmodified|untouched|existing|\brest\b|remain|omitted|elided|truncated|\bsnip|\bsame\b"
    r"|no change|brevity|as before|略|既存|変更|残り|そのまま|同じ|同様|従来",
    re.IGNORECASE,
)
_FRAME = lazy(
    r"(?P<open>\{/\*+|/\*+|<!--|\(\*|\{-|//+|#+|--+(?=\s)|;+|%+|'(?=\s)|REM\b|\"\"\")?\s*"
    r"(?P<inner>.*?)\s*(?P<close>\*+/\}?|-->|\*\)|-\}|\"\"\")?",
    re.IGNORECASE | re.DOTALL,
)
_LEADING = lazy(rf"[\s\[({{<（「【〈《*_-]*{_DOTS}")
_TRAILING = lazy(rf"{_DOTS}[\s\])}}>）」】〉》*_.;,-]*$")
_EDGES = lazy(
    rf"^(?:{_DOTS}|[\s\[\](){{}}<>（）「」【】〈〉《》*_.,:;!~。、・…—–-])+|(?:{_DOTS}|[\s\[\](){{}}<>（）「」【】〈〉《》*_.,:;!~。、・…—–-])+$"
)
_ALONE = lazy(rf"[\s\[({{<（「【〈《]*{_DOTS}(?:\s*{_DOTS})*[\s\])}}>）」】〉》]*")
_BRACKETED = lazy(r"[\[({<（「【〈《].*[\])}>）」】〉》]$", re.DOTALL)
_MOST_WORDS = 9

_NOUN = (
    r"(?:codes?|files?|implementations?|contents?|logic|body|bodies|lines?|functions?|methods?|class(?:es)?|imports?"
    r"|tests?|styles?|fields?|props|properties|routes?|handlers?|cases?|options?|config(?:uration)?|settings|entries"
    r"|items|definitions?|variables?|constants?|types?|components?|rules?|parts?|sections?|stuff|module|script|page"
    r"|document|template|markup|html|css|json|data|steps|jobs|keys|values|text|attributes|elements|members|exports?)"
)
_STAYS = (
    r"(?:(?:is|are|remains?|stays?|here|kept|left|all|exactly|completely|goes|go|of it)\s+)*"
    r"(?:unchanged|unmodified|untouched|intact|identical|(?:the )?same(?: as (?:before|above|it was|in the original|original))?"
    r"|as (?:is|before|it was|above|they were)|omitted|elided|truncated|skipped|snipped|not shown|here|below|above|follows|continues?)"
    r"(?: (?:for brevity|here|below|above|as before|from here))?"
)
_WHOLE = lazy(
    rf"(?:"
    rf"(?:the )?(?:rest|remainder)(?: of (?:the |this |your |that |our )?(?:\w+ ){{0,2}}{_NOUN}(?: {_STAYS})?| {_STAYS})"
    rf"|(?:all |the |any |your |my |our |and )*(?:existing|previous|original|unchanged|remaining|current)"
    rf" (?:\w+ )?(?:code|implementation|contents?|logic|file|body)(?: {_STAYS})?"
    rf"|(?:all |the |any |your |my |our |and )*(?:existing|previous|original|unchanged|remaining|other)(?: \w+)? {_NOUN} {_STAYS}"
    rf"|(?:the |all |these |those )?(?:everything|everything else|all else|others?|{_NOUN})"
    rf" (?:(?:is|are|remains?|stays?|kept|left)\s+)*(?:unchanged|unmodified|untouched|the same|as before|omitted|elided|truncated)(?: for brevity)?"
    rf"|(?:code |content )?(?:omitted|elided|truncated|unchanged|unmodified|snip|snipped)(?: (?:for brevity|here|code|below|above))*"
    rf"|(?:same|as|exactly) (?:as )?(?:before|above|original)|no changes?(?: (?:here|needed|below|above|required|from here|to \w+))*"
    rf"|keep (?:the |all |your )*(?:rest|existing|remaining)(?: (?:of |the |\w+ ){{0,3}}{_NOUN})?(?: {_STAYS})?"
    rf")",
    re.IGNORECASE,
)
_KEEPS = lazy(
    r"\b(?:existing|rest|remain(?:s|ing|der)?|unchanged|unmodified|untouched|same|as is|as before|previous(?:ly)?|original"
    r"|omitted|elided|truncated|snip(?:ped)?|skip(?:ped)?|others?|more|etc|keep|kept|continues?|no changes?|brevity"
    r"|and so on|the end|your|here)\b",
    re.IGNORECASE,
)
_JAPANESE_THING = (
    r"(?:コード|処理|実装|内容|関数|メソッド|部分|設定|ファイル|行|定義|クラス|スタイル|インポート|import|テスト|ロジック|フィールド"
    r"|項目|変数|箇所|もの|ソース|記述|中身|本体|ルート|プロパティ)"
)
_JAPANESE_STAYS = (
    r"(?:そのまま|変更なし|変更無し|変更ありません|変更しません|変更しない|同じ|同様|維持|続く|続きます|入る|入ります|省略"
    r"|ここに|です|残す)"
)
_JAPANESE = lazy(
    r"(?:"
    rf"(?:以下|以降|以上|前|中|後|途中|上記|下記|残り|その他|他|ここ)?(?:の|は|に|も|から|まで)?{_JAPANESE_THING}?(?:は|を|も|の)?"
    r"(?:省略|中略|後略|前略|略|以下略)(?:します|しました|する|です|。)?"
    rf"|(?:ここに|ここから|以下|以降|以下に|残り|残りの|その他の|他の)?(?:、)?(?:は|も|の)?(?:既存|元|従来|残り|以前|これまで|その他|他|以下|以降)(?:の)?"
    rf"(?:{_JAPANESE_THING}+(?:は|が|を|も|と|に)?{_JAPANESE_STAYS}*|(?:は|も|が|を)?{_JAPANESE_STAYS}+)"
    r"|(?:変更なし|変更無し|変更ありません|そのまま|同上|以下同様|以降同様|以下同じ|変更点なし)(?:です)?"
    r")"
)
_JAPANESE_SIGNS = lazy(r"略|変更|既存|残り|そのまま|同じ|同様|同上|従来|元の|以前の|これまでの")
_INLINE = lazy(rf"\S\s*(?://|#|/\*|<!--)\s*{_DOTS}\s*(?P<said>[^\n]*)$")


def may_hold_omission(text: str) -> bool:
    """Quick check whether `text` may contain a line that says code is left out; False is certain."""
    return _HINT.search(text) is not None


def omission_kind(line: str) -> Kind:
    """How a line says that code is left out; empty where it does not."""
    stripped = line.strip()
    if not stripped or len(stripped) > 160 or _HINT.search(stripped) is None:
        return ""
    frame = _FRAME.fullmatch(stripped)
    inner = frame["inner"] if frame else stripped
    framed = bool(frame and frame["open"])
    leading, trailing = _LEADING.match(inner) is not None, _TRAILING.search(inner) is not None
    said = _EDGES.sub("", inner)
    if not said:
        return "dots" if _ALONE.fullmatch(inner) else ""
    framed = framed or _BRACKETED.fullmatch(inner) is not None
    whole = _is_whole(said)
    if leading and len(said.split()) <= _MOST_WORDS and len(said) <= 80:
        keeps = whole or _KEEPS.search(said) is not None or _JAPANESE_SIGNS.search(said) is not None
        if keeps or (trailing and framed):
            return "both"
        return ""
    if trailing and whole:
        return "both"
    return "words" if whole and (framed or _is_japanese(said) or len(said.split()) > 2) else ""


def has_omission_comment(line: str) -> bool:
    """Whether code on the line is followed by a comment that says that more is left out."""
    found = _INLINE.search(line) if "..." in line or "…" in line else None
    said = (
        _EDGES.sub("", found["said"].removesuffix("*/").removesuffix("}").rstrip().removesuffix("*/"))
        if found
        else ""
    )
    return bool(said) and (_is_whole(said) or _JAPANESE_SIGNS.search(said) is not None)


def _is_whole(said: str) -> bool:
    plain = re.sub(r"[\s,]+", " ", said.replace("(", "").replace(")", "")).strip()
    return _WHOLE.fullmatch(plain) is not None or _is_japanese(said)


def _is_japanese(said: str) -> bool:
    plain = re.sub(r"[\s。、（）()…・]+", "", said)
    return _JAPANESE_SIGNS.search(plain) is not None and _JAPANESE.fullmatch(plain) is not None

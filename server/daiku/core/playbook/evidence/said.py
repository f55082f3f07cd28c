"""What persons said of bullets: the words that name one, which run they are about, and whether they speak for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from daiku.core.playbook.evidence.advice import names
from daiku.core.state.state import PERSON
from daiku.core.text.patterns import lazy
from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalGiven, InputGiven, MessageEvent, RunFinished, RunStarted

Side: TypeAlias = Literal["for", "against"]

_CLAUSES = lazy(
    r"(?<=[.!?;])\s+|(?<=？)|[\n。！；、，]|,\s+|\s+(?:but|however|whereas|while)\s+", re.IGNORECASE
)
_AGAINST = lazy(
    r"\b(?:not|never|no longer|wrong(?:ly)?|incorrect|false|outdated|obsolete|stale|bad|broken|useless|harmful|misleading"
    r"|ignore|drop|forget|stop|avoid|remove|disregard|misled|mistaken|nonsense|fails?|failed|delete|disable)\b|n['’]t\b"
    r"|違(?:う|い|って)|間違|誤(?:り|って|っ)|正しくな|古い|古く|使わない|使うな|従わな|従うな|無視|やめ|駄目|だめ|ダメ|いらない|不要"
    r"|役に立た|ではない|ではありません|じゃない|ません|削除|消して|有害|嘘",
    re.IGNORECASE,
)
_FOR = lazy(
    r"\b(?:right|correct|true|good|great|helpful|useful|helped|works?|worked|thanks|thank you|well done|perfect|keep)\b"
    r"|正しい|正しかった|合って|良い|良かった|よかった|助か|役に立っ|役立っ|ありがとう|その通り|うまくいった|効いた",
    re.IGNORECASE,
)
_NOT_BAD = lazy(
    r"\b(?:not|never|n['’]t)\s+(?:at all\s+)?(?:wrong|bad|false|incorrect|harmful|broken)\b|n['’]t\s+(?:wrong|bad|false|incorrect)\b"
    r"|\bno(?:thing)?\s+(?:problem|wrong|mistake)\b|(?:問題|間違い|誤り)(?:は|が)?(?:な(?:い|し|かった)|ありません)|悪くな",
    re.IGNORECASE,
)
_OPEN = lazy(r"[?？]\s*$|か\s*$|^\W*(?:if|unless|whether|suppose)\b|^\s*もし", re.IGNORECASE)


class Word(NamedTuple):
    """What a person said in a conversation, in which run at the top. `first`: it is what that run began with, and so
    is about what came before."""

    seq: int
    text: str
    run: str
    first: bool = False


class Said(NamedTuple):
    """The words of persons in a conversation, and of its runs at the top, in order, what each was told and named."""

    words: tuple[Word, ...]
    runs: tuple[str, ...]
    told: dict[str, set[str]]
    cited: dict[str, set[str]]

    def about(self, bullet: str, run: str) -> tuple[Word, ...]:
        """The words that name a bullet and are about this run: the last one until then that named the bullet itself,
        else the last that was told it."""
        return tuple(
            word for word in self.words if names(word.text, bullet) and self._meant(word, bullet) == run
        )

    def _meant(self, word: Word, bullet: str) -> str | None:
        at = self.runs.index(word.run)
        before = self.runs[:at][::-1]
        order = (*before, word.run) if word.first else (word.run, *before)
        for known in (self.cited, self.told):
            for run in order:
                if bullet in known.get(run, ()):
                    return run
        return None


def tops_of(chunks: Iterable[Chunk]) -> dict[str, str]:
    """The run at the top of each run of a session; of one at the top it is itself."""
    top: dict[str, str] = {}
    for chunk in chunks:
        if chunk.run not in top:
            top[chunk.run] = top.get(chunk.parent, chunk.parent) if chunk.parent else chunk.run
    return top


def said_in(chunks: Sequence[Chunk], tops: Mapping[str, str]) -> Said:
    """What persons said in a session, by its chunks in order and the run at the top of each run."""
    said = Said((), tuple(dict.fromkeys(tops.values())), {}, {})
    words: list[Word] = []
    for chunk in chunks:
        run = tops[chunk.run]
        match chunk.event:
            case RunStarted(lessons=lessons):
                said.told.setdefault(run, set()).update(each.id for each in lessons)
            case RunFinished(used_bullets=used):
                said.cited.setdefault(run, set()).update(used)
            case _:
                pass
        if text := _text_of(chunk):
            words.append(Word(chunk.seq, text, run, first=isinstance(chunk.event, RunStarted)))
    return said._replace(words=tuple(words))


def _text_of(chunk: Chunk) -> str:
    """What a person said there; empty where nobody did, or where strangers' words are in it."""
    match chunk.event:
        case RunStarted(prompt=text, tainted=False) if chunk.parent is None:
            return text
        case MessageEvent(role="user", reminder=None, agent=agent) as said if agent == PERSON:
            return str(said.text)
        case ApprovalGiven(feedback=str(text), unattended=False):
            return text
        case InputGiven(text=text, unattended=False):
            return text
        case _:
            return ""


def judgement(text: str, bullet: str) -> Side | None:
    """Whether words speak for or against a bullet, by the clauses that name it; the last that says so. A question or a
    condition says nothing."""
    found: Side | None = None
    for clause in _CLAUSES.split(text):
        if not names(clause, bullet) or _OPEN.search(clause):
            continue
        if _NOT_BAD.search(clause):
            found = "for"
        elif _AGAINST.search(clause):
            found = "against"
        elif _FOR.search(clause):
            found = "for"
    return found

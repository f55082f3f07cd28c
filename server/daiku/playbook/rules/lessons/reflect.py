"""Lessons by rule, without a model: from commands that failed and passed, rejections with a reason, and corrections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    MessageEvent,
    Restored,
    Review,
    RunFinished,
    RunStarted,
)
from daiku.domain.playbook import LearntFrom
from daiku.playbook.rules.lessons.proposal import Proposal
from daiku.playbook.rules.lessons.replaced import replaced_commands
from daiku.run.rules.state.state import PERSON
from daiku.texts.rules.patterns import lazy

LINE_LENGTH = 160
"""Characters of a command line that a lesson repeats."""
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


def reflect(chunks: Sequence[Chunk]) -> tuple[Proposal, ...]:
    """What the runs in `chunks` taught, in the order in which it was learnt: nested runs and what came later, such as
    reviews and the person's next words, included. Texts are made from command lines and the person's words only."""
    found = [*replaced_commands(chunks), *_rejections(chunks), *_corrections(chunks)]
    found.sort(key=lambda each: each.evidence[-1].seq)
    return tuple(found)


def place(chunk: Chunk) -> LearntFrom:
    """The place of a chunk as evidence."""
    return LearntFrom(session_id=chunk.session, run_id=chunk.run, seq=chunk.seq)


def _rejections(chunks: Sequence[Chunk]) -> Iterator[Proposal]:
    """A person did not let something be done, or only a part of an edit, and said why."""
    asked: dict[str, Chunk] = {}
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(approval_id=approval):
                asked[approval] = chunk
            case ApprovalGiven(approval_id=approval, unattended=False, feedback=str(reason)) as given:
                before = asked.get(approval)
                refused = given.decision in ("reject_once", "reject_always") or given.hunks is not None
                if before is not None and refused and (words := rule_words(reason)):
                    yield _rejected(before, chunk, words)
            case _:
                pass


def _rejected(asked: Chunk, given: Chunk, words: str) -> Proposal:
    event = asked.event
    command = event.args.get("command") if isinstance(event, ApprovalAsked) else None
    if isinstance(command, str) and (line := _line(command)):
        return Proposal(
            section="tool_usage",
            content=f"Do not run `{line}`: {words}",
            why="rejected",
            evidence=(place(asked), place(given)),
            keywords=(line,),
            failed=(line,),
        )
    return Proposal(
        section="review_feedback", content=words, why="rejected", evidence=(place(asked), place(given))
    )


def _line(command: str) -> str:
    """A command as a lesson can repeat it; empty where it cannot."""
    line = " ".join(command.split())
    plain = "\n" not in command.strip() and "`" not in line and line.isprintable()
    return line if plain and len(line) <= LINE_LENGTH else ""


def _corrections(chunks: Sequence[Chunk]) -> Iterator[Proposal]:
    """What the person said while a run worked, after they undid something, or first thing after a run, as a rule."""
    ended = undone = False
    for chunk in chunks:
        match chunk.event:
            case Review(decision="reject") | Restored():
                undone = True
            case RunFinished() if chunk.parent is None:
                ended = True
            case RunStarted(prompt=prompt) if chunk.parent is None:
                if ended or undone:
                    yield from _corrected(chunk, prompt, asked=not undone, undone=undone)
                ended = undone = False
            case MessageEvent(role="user", agent=agent, text=words) if agent == PERSON:
                yield from _corrected(chunk, str(words), asked=False, undone=undone)
                undone = False
            case _:
                pass


def _corrected(chunk: Chunk, said: str, *, asked: bool, undone: bool) -> Iterator[Proposal]:
    """`asked`: it is a request of its own, which is only a correction where it begins like one."""
    words = standing_correction(said, opening=asked, undone=undone)
    if words:
        yield Proposal(
            section="review_feedback" if undone else "project_conventions",
            content=words,
            why="rejected" if undone else "corrected",
            evidence=(place(chunk),),
        )


def rule_words(said: str) -> str:
    """Shorten a person's reason to one or two sentences; empty if it is too little for a lesson."""
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
    """Return the sentences of `said` that ask for something from now on; empty if there are none.

    `opening`: they count only if the text begins as a correction does. `undone`: the person just took
    something back."""
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

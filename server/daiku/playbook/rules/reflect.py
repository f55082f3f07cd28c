"""Lessons by rule, from failed and passed commands, rejections with a reason, and corrections."""

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
from daiku.playbook.rules.proposals import Proposal, get_place
from daiku.playbook.rules.replaced import find_replaced_commands
from daiku.run.rules.state.state import PERSON
from daiku.texts.rules.patterns import lazy

LINE_LENGTH = 160
"""Maximum length of a command line in a lesson, in characters."""
LONGEST = 240
"""Maximum length of a user's words in a lesson, in characters."""
LEAST_WORDS, LEAST_SIGNS = 3, 6
"""Minimum length of a reason in words, or in Japanese or Chinese characters: a shorter one lacks context."""

_OPENS = lazy(
    r"(?:no|nope|nah|wrong|stop|don'?t|do not|never|always|instead|actually|please\s+(?:don'?t|do not|never|always|use)"
    r"|not like (?:that|this)|that(?:'s| is| was) (?:wrong|not)|this is (?:wrong|not)|we (?:don'?t|do not|never|always|use)"
    r"|you (?:should|must)(?: not|n'?t)?|from now on|next time|prefer)\b"
    r"|いや|いいえ|違[うい]|ちが[うい]|そうじゃな|そうではな|駄目|だめ|ダメ|やめ|必ず|いつも|常に|絶対|今後|次から|これから",
    re.IGNORECASE,
)
"""Openings of a correction."""
_RULE = lazy(
    r"\b(?:use|run|call|prefer|keep|put|write|name|avoid|add|leave|make|start|import|don'?t|do not|never|always|must|should"
    r"|instead|rather than|only|has to|have to|needs? to)\b"
    r"|使[わいうえっ]|しない|せず|するな|ではな|じゃな|代わり|代り|必ず|いつも|常に|絶対|禁止|べき|こと[。．]?$|ください|下さい|して",
    re.IGNORECASE,
)
"""Words of an instruction."""
_STEERS = lazy(
    r"\b(?:don'?t|do not|never|always|instead|rather than|must(?: not|n'?t)|should(?: not|n'?t)?|prefer|from now on|in this (?:repo|project|repository))\b"
    r"|使わな|しないで|するな|ではな[くい]|じゃな[くい]|代わり|代り|必ず|いつも|常に|絶対|禁止|べき|今後|やめ",
    re.IGNORECASE,
)
_REASONS = lazy(
    r"\b(?:must|should|has to|have to|keep|keeps|we)\b|こと|して(?:ください|下さい)|ください|下さい",
    re.IGNORECASE,
)
"""Further words of an instruction, right after the user undid something."""
_LEADING = lazy(
    r"^(?:(?:no|nope|nah|wrong|stop|actually|sorry|please|ok(?:ay)?|いや|いいえ|違う|違います|ちがう|ちがいます)(?:[\s,.!:;、。！，—–-]+|$))+",
    re.IGNORECASE,
)
_SENTENCES = lazy(r"(?<=[.!?])\s+(?=[A-Z`\"'])|(?<=[。！？])")
_SIGNS = lazy(r"[\u3040-\u30ff\u3400-\u9fff]")


def reflect(chunks: Sequence[Chunk]) -> tuple[Proposal, ...]:
    """Return the lessons of the runs in `chunks`, in the order in which they were learned.

    Nested runs, reviews, and the next words of the user are included. Texts consist of command lines and of
    the user's words only.
    """
    proposals = [*find_replaced_commands(chunks), *_find_rejections(chunks), *_find_corrections(chunks)]
    proposals.sort(key=lambda each: each.evidence[-1].seq)
    return tuple(proposals)


def _find_rejections(chunks: Sequence[Chunk]) -> Iterator[Proposal]:
    """Yield a lesson for each rejection, complete or of a part of an edit, that has a reason."""
    requests: dict[str, Chunk] = {}
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(approval_id=approval):
                requests[approval] = chunk
            case ApprovalGiven(approval_id=approval, unattended=False, feedback=str(reason)) as answer:
                request = requests.get(approval)
                is_rejection = answer.decision in ("reject_once", "reject_always") or answer.hunks is not None
                if request is not None and is_rejection and (words := shorten_reason(reason)):
                    yield _propose_rejection(request, chunk, words)
            case _:
                pass


def _propose_rejection(request: Chunk, answer: Chunk, words: str) -> Proposal:
    event = request.event
    command = event.args.get("command") if isinstance(event, ApprovalAsked) else None
    if isinstance(command, str) and (line := _to_line(command)):
        return Proposal(
            section="tool_usage",
            content=f"Do not run `{line}`: {words}",
            why="rejected",
            evidence=(get_place(request), get_place(answer)),
            keywords=(line,),
            failed=(line,),
        )
    return Proposal(
        section="review_feedback",
        content=words,
        why="rejected",
        evidence=(get_place(request), get_place(answer)),
    )


def _to_line(command: str) -> str:
    """Return a command as one line for a lesson; empty if it does not fit."""
    line = " ".join(command.split())
    plain = "\n" not in command.strip() and "`" not in line and line.isprintable()
    return line if plain and len(line) <= LINE_LENGTH else ""


def _find_corrections(chunks: Sequence[Chunk]) -> Iterator[Proposal]:
    """Yield lessons from words of the user during a run, after an undo, or right after a run."""
    ended = undone = False
    for chunk in chunks:
        match chunk.event:
            case Review(decision="reject") | Restored():
                undone = True
            case RunFinished() if chunk.parent is None:
                ended = True
            case RunStarted(prompt=prompt) if chunk.parent is None:
                if ended or undone:
                    yield from _propose_correction(chunk, prompt, is_request=not undone, undone=undone)
                ended = undone = False
            case MessageEvent(role="user", agent=agent, text=words) if agent == PERSON:
                yield from _propose_correction(chunk, str(words), is_request=False, undone=undone)
                undone = False
            case _:
                pass


def _propose_correction(chunk: Chunk, message: str, *, is_request: bool, undone: bool) -> Iterator[Proposal]:
    """Yield the lesson of a correction. A request counts only if it begins like a correction."""
    words = find_correction(message, opening=is_request, undone=undone)
    if words:
        yield Proposal(
            section="review_feedback" if undone else "project_conventions",
            content=words,
            why="rejected" if undone else "corrected",
            evidence=(get_place(chunk),),
        )


def shorten_reason(reason: str) -> str:
    """Shorten a user's reason to one or two sentences; empty if it is too short for a lesson."""
    plain = " ".join(reason.split())
    plain = _LEADING.sub("", plain)
    sentences = [each.strip() for each in _SENTENCES.split(plain) if each.strip()]
    shortened = ""
    for sentence in sentences:
        longer = f"{shortened} {sentence}".strip()
        if len(longer) > LONGEST:
            break
        shortened = longer
    if len(shortened.split()) < LEAST_WORDS and len(_SIGNS.findall(shortened)) < LEAST_SIGNS:
        return ""
    complete = (
        shortened
        if shortened[-1:] in ".!?。！？…"
        else f"{shortened}{'。' if _SIGNS.search(shortened[-1:]) else '.'}"
    )
    return complete[:1].upper() + complete[1:]


def find_correction(message: str, *, opening: bool, undone: bool = False) -> str:
    """Return the sentences of `message` that ask for something from now on; empty if there are none.

    `opening`: they count only if the text begins like a correction. `undone`: the user just undid something.
    """
    plain = " ".join(message.split())
    if opening and _OPENS.match(plain) is None:
        return ""
    corrects = _OPENS.match(plain) is not None
    sentences = [each.strip() for each in _SENTENCES.split(_LEADING.sub("", plain)) if each.strip()]
    rules = [
        each
        for each in sentences
        if _STEERS.search(each) or (corrects and _RULE.search(each)) or (undone and _REASONS.search(each))
    ]
    return shorten_reason(" ".join(rules)) if rules else ""

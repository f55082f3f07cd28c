"""Which runs on record judge a change: never those that it was learnt from, and never those that teach."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from daiku.core.playbook.relevance import Asked
from daiku.domain.playbook import Delta
from daiku.domain.trials import Case, ProjectStart

PARTS, TEACHING = 3, 0
"""Of so many parts of all sessions, one teaches and the others judge."""
Original: TypeAlias = Callable[[str, str], tuple[str, str]]
"""The session and the run of which these are copies; themselves where they are none."""


def is_held_out(session: str) -> bool:
    """Whether the runs of a session judge; else they teach. It depends on the session's id alone, so it is the same on every
    day and for every change. A session is one or the other as a whole: what went wrong in one run of it is often put
    right in the next."""
    return hashlib.sha256(session.encode()).digest()[0] % PARTS != TEACHING


def judges_of(
    delta: Delta, cases: Sequence[Case], questions: Collection[str], original: Original
) -> tuple[Case, ...]:
    """The cases that may judge `delta`: held out, not of a session that it was learnt from (a copy by a fork is that session
    too), and not the same request as one of `questions`, which are those of these sessions. Of the same request on the
    same files the first one counts: it is one case. First come those whose request shares most words with the text of
    `delta`, for there it shows what it is worth; of equal ones ids decide, and how they came out has no part in it."""
    taught = {original(each.session_id, each.run_id)[0] for each in (*delta.evidence, *delta.again)}
    asked = {question_key(each) for each in questions}
    found: dict[tuple[str, ProjectStart], Case] = {}
    for case in sorted(cases, key=lambda each: _digest(each.run)):
        session, _ = original(case.session, case.run)
        key = question_key(case.question)
        if is_held_out(session) and session not in taught and key not in asked:
            found.setdefault((key, case.start), case)
    return tuple(sorted(found.values(), key=lambda each: -Asked(each.question).shared_weight(delta.content)))


def question_key(question: str) -> str:
    """The same for requests that differ in white space and capitals alone."""
    return " ".join(question.split()).casefold()


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()

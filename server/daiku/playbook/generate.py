"""The Generator (ACE): answers a query with what the playbook knows of it, and says how it came to the answer."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from daiku.dataclass import dataclass, field
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.playbook import Bullet, BulletHit, Playbook, SearchQuery, Trajectory
from daiku.models.tokens import estimate
from daiku.playbook.templates import check_dataset
from daiku.settings.config import PlaybookSettings
from daiku.texts.text import Text, as_text, joined, render, text
from daiku.tools.threads import LoopThread

log = logging.getLogger(__name__)

Stage: TypeAlias = Literal["input", "load", "search", "prompt", "model", "result"]
"""Where an attempt is: what is asked is checked, then the five stages of R3.2."""

USUAL = PlaybookSettings()
_HALVES = re.compile("[\ud800-\udfff]")


class LoadsPlaybook(Protocol):
    """Where the bullets are kept; it is asked on a thread of its own, for a disk may be slow."""

    def load(self) -> Playbook: ...


class Searches(Protocol):
    """Finds the bullets that fit a query (R3.45), the best first; asked on a thread of its own."""

    def search(self, query: SearchQuery, playbook: Playbook, /) -> Sequence[BulletHit]: ...


class BuildsPrompt(Protocol):
    """Makes the prompt. Every bullet that it is given is in it (P3)."""

    def build(self, query: str, bullets: list[Bullet], dataset: str) -> str: ...


class Invokes(Protocol):
    """Asks a model. `retrieved` are the bullets in the prompt, for whoever keeps a record of it."""

    async def invoke(self, prompt: str, retrieved: Sequence[Bullet]) -> str: ...


@dataclass(slots=True)
class _Attempt:
    """How far an attempt has come."""

    query: str
    dataset: str
    say: Callable[[Text], str]
    stage: Stage = "input"
    steps: list[str] = field(default_factory=list[str])

    def did(self, step: Text) -> None:
        self.steps.append(self.say(step))

    def ended(self, answer: str, used: list[str], error: str | None = None) -> Trajectory:
        return Trajectory(
            query=self.query,
            dataset=self.dataset,
            generated_answer=answer,
            reasoning_steps=self.steps,
            used_bullet_ids=used,
            status="success" if error is None else "failure",
            error_message=error,
        )


class GeneratorAgent:
    """Answers queries with the help of a playbook (R3.1–R3.9). Whatever goes wrong is told by the Trajectory, none of its
    two methods raises. `settings` say how much of the playbook is told, `language` in which one the steps are,
    `redact` takes secrets out of what a failure says."""

    def __init__(
        self,
        playbook_store: LoadsPlaybook,
        hybrid_search: Searches,
        llm_client: Invokes,
        prompt_builder: BuildsPrompt,
        *,
        settings: PlaybookSettings = USUAL,
        language: str = "en",
        redact: Callable[[str], str] = str,
    ) -> None:
        self._store = playbook_store
        self._search = hybrid_search
        self._llm = llm_client
        self._prompts = prompt_builder
        self._settings = settings
        self._language = language
        self._redact = redact

    def run(self, query: str, dataset: str) -> Trajectory:
        """`arun` for code that is not asynchronous; inside a running event loop this loop waits for it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.arun(query, dataset))
        thread = LoopThread()
        try:
            return thread.wait(self.arun(query, dataset))
        finally:
            thread.close()

    async def arun(self, query: str, dataset: str) -> Trajectory:
        """Load the playbook, find what fits, build the prompt, ask the model, and tell how that went."""
        attempt = _Attempt(_shown(query), _shown(dataset), self._say)
        try:
            _check_input(query, dataset)
            return await self._generate(attempt)
        except Exception as wrong:
            log.info("the generator failed at %s", attempt.stage, exc_info=not isinstance(wrong, DaikuError))
            why = wrong.failure.message if isinstance(wrong, DaikuError) else _described(wrong)
            return attempt.ended("", [], _valid(self._redact(f"{attempt.stage}: {self._say(why)}")))

    async def _generate(self, attempt: _Attempt) -> Trajectory:
        query, dataset = attempt.query, attempt.dataset
        attempt.stage = "load"
        playbook = await asyncio.to_thread(self._store.load)
        attempt.did(text("generate.loaded", count=len(playbook.bullets)))
        attempt.stage = "search"
        wanted = SearchQuery(
            query_text=query, top_k=self._settings.top_k, min_confidence=self._settings.min_confidence
        )
        bullets = self._chosen(await asyncio.to_thread(self._search.search, wanted, playbook))
        attempt.did(_found(bullets))
        attempt.stage = "prompt"
        prompt = self._prompts.build(query, [_with_id(each) for each in bullets], dataset)
        attempt.did(text("generate.built", dataset=dataset))
        attempt.stage = "model"
        reply = await self._llm.invoke(prompt, bullets)
        attempt.stage = "result"
        answer = _valid(reply)
        attempt.did(text("generate.answered", count=len(answer)))
        cited = [each.id for each in bullets if is_cited(each.id, answer)]
        if cited:
            attempt.did(text("generate.cited", ids=joined("list", cited)))
        return attempt.ended(answer, cited or [each.id for each in bullets])

    def _chosen(self, hits: Sequence[BulletHit]) -> list[Bullet]:
        """Those that the model is told: the best ones, as many as there is room for."""
        known = (hit.bullet for hit in hits if hit.bullet.active and not hit.resting)
        chosen: list[Bullet] = []
        left = self._settings.token_budget
        for bullet in list(known)[: self._settings.top_k]:
            tokens = estimate(_with_id(bullet).content)
            if tokens <= left:
                chosen.append(bullet)
                left -= tokens
        return chosen

    def _say(self, said: Text) -> str:
        return render(said, self._language)


def is_cited(bullet: str, said: str) -> bool:
    """Whether `said` names the bullet, as `[shr-00001]` or without the brackets (the default template of seed 3 asks for
    none, and code has them in its comments); not as a part of a longer name."""
    return re.search(rf"(?<![A-Za-z0-9_-]){re.escape(bullet)}(?![A-Za-z0-9_-])", said) is not None


def _check_input(query: object, dataset: object) -> None:
    """Raises UsageError where no model is to be asked."""
    for name, given in (("query", query), ("dataset", dataset)):
        if not isinstance(given, str):
            message = text("generate.no_text", name=name, kind=type(given).__name__)
            raise UsageError(Failure(kind="usage", message=message))
    if not _shown(query).strip():
        raise UsageError(Failure(kind="usage", message=text("generate.no_query")))
    check_dataset(_shown(dataset))


def _with_id(bullet: Bullet) -> Bullet:
    """The bullet as the model reads it: by its id it can say what it used."""
    return bullet.model_copy(update={"content": f"[{bullet.id}] {bullet.content}"})


def _found(bullets: Sequence[Bullet]) -> Text:
    if not bullets:
        return text("generate.found_nothing")
    return text("generate.found", count=len(bullets), ids=joined("list", [each.id for each in bullets]))


def _shown(given: object) -> str:
    """What was asked, as the Trajectory tells it, whatever it is."""
    return _valid(given if isinstance(given, str) else repr(given))


def _valid(said: str) -> str:
    """`said` without halves of surrogate pairs, which no JSON can hold."""
    return _HALVES.sub("\ufffd", said)


def _described(wrong: Exception) -> Text:
    """What an exception says that was not expected, by its kind."""
    kind, said = type(wrong).__name__, str(wrong)
    return as_text(f"{kind}: {said}" if said else kind)

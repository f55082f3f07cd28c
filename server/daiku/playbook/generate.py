"""The Generator (ACE): answers a query with the playbook, and records its steps."""

from __future__ import annotations

import asyncio
import errno
import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from daiku.dataclass import dataclass, field
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.playbook import Bullet, BulletHit, Playbook, SearchQuery, Trajectory
from daiku.models.tokens import estimate
from daiku.prompts import find_prompts_folder
from daiku.settings.config import PlaybookSettings
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, as_text, joined, render, text
from daiku.tools.threads import LoopThread

log = logging.getLogger(__name__)

Stage: TypeAlias = Literal["input", "load", "search", "prompt", "model", "result"]
"""Stage of an attempt: validation of the input, then the five stages of R3.2."""

USUAL = PlaybookSettings()
_HALVES = re.compile("[\ud800-\udfff]")


class LoadsPlaybook(Protocol):
    """Storage of the bullets; called in a thread."""

    def load(self) -> Playbook: ...


class Searches(Protocol):
    """Search for the bullets that fit a query (R3.45), best first; called in a thread."""

    def search(self, query: SearchQuery, playbook: Playbook, /) -> Sequence[BulletHit]: ...


class BuildsPrompt(Protocol):
    """Builds the prompt, which contains every bullet (P3)."""

    def build(self, query: str, bullets: list[Bullet], dataset: str) -> str: ...


class Invokes(Protocol):
    """Calls a model. `retrieved` are the bullets in the prompt."""

    async def invoke(self, prompt: str, retrieved: Sequence[Bullet]) -> str: ...


@dataclass(slots=True)
class _Attempt:
    """Progress of an attempt."""

    query: str
    dataset: str
    say: Callable[[Text], str]
    stage: Stage = "input"
    steps: list[str] = field(default_factory=list[str])

    def add_step(self, step: Text) -> None:
        self.steps.append(self.say(step))

    def to_trajectory(self, answer: str, used: list[str], error: str | None = None) -> Trajectory:
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
    """Answers queries with the help of a playbook (R3.1–R3.9).

    Failures are reported in the Trajectory; its two methods do not raise. `settings` limit the bullets,
    `language` is that of the steps, `redact` removes secrets from error messages.
    """

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
        """Run `arun` synchronously; inside a running event loop this blocks it."""
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
        """Load the playbook, search, build the prompt, call the model, and return the trajectory."""
        attempt = _Attempt(_to_text(query), _to_text(dataset), self._render)
        try:
            _check_input(query, dataset)
            return await self._generate(attempt)
        except Exception as wrong:
            log.info("the generator failed at %s", attempt.stage, exc_info=not isinstance(wrong, DaikuError))
            why = wrong.failure.message if isinstance(wrong, DaikuError) else _describe(wrong)
            return attempt.to_trajectory(
                "", [], _replace_surrogates(self._redact(f"{attempt.stage}: {self._render(why)}"))
            )

    async def _generate(self, attempt: _Attempt) -> Trajectory:
        query, dataset = attempt.query, attempt.dataset
        attempt.stage = "load"
        playbook = await asyncio.to_thread(self._store.load)
        attempt.add_step(text("generate.loaded", count=len(playbook.bullets)))
        attempt.stage = "search"
        wanted = SearchQuery(
            query_text=query, top_k=self._settings.top_k, min_confidence=self._settings.min_confidence
        )
        bullets = self._choose(await asyncio.to_thread(self._search.search, wanted, playbook))
        attempt.add_step(_describe_found(bullets))
        attempt.stage = "prompt"
        prompt = self._prompts.build(query, [_with_id(each) for each in bullets], dataset)
        attempt.add_step(text("generate.built", dataset=dataset))
        attempt.stage = "model"
        reply = await self._llm.invoke(prompt, bullets)
        attempt.stage = "result"
        answer = _replace_surrogates(reply)
        attempt.add_step(text("generate.answered", count=len(answer)))
        cited = [each.id for each in bullets if is_cited(each.id, answer)]
        if cited:
            attempt.add_step(text("generate.cited", ids=joined("list", cited)))
        return attempt.to_trajectory(answer, cited or [each.id for each in bullets])

    def _choose(self, hits: Sequence[BulletHit]) -> list[Bullet]:
        """Return the best bullets within the token budget."""
        usable = (hit.bullet for hit in hits if hit.bullet.active and not hit.resting)
        chosen: list[Bullet] = []
        left = self._settings.token_budget
        for bullet in list(usable)[: self._settings.top_k]:
            tokens = estimate(_with_id(bullet).content)
            if tokens <= left:
                chosen.append(bullet)
                left -= tokens
        return chosen

    def _render(self, message: Text) -> str:
        return render(message, self._language)


def is_cited(bullet: str, answer: str) -> bool:
    """Return True if `answer` names the bullet, as `[shr-00001]` or without brackets.

    The default template of seed 3 does not ask for brackets, and code has ids in comments. A part of a longer
    name does not count.
    """
    return re.search(rf"(?<![A-Za-z0-9_-]){re.escape(bullet)}(?![A-Za-z0-9_-])", answer) is not None


def _check_input(query: object, dataset: object) -> None:
    """Raise UsageError if the query or the dataset is invalid."""
    for name, value in (("query", query), ("dataset", dataset)):
        if not isinstance(value, str):
            message = text("generate.no_text", name=name, kind=type(value).__name__)
            raise UsageError(Failure(kind="usage", message=message))
    if not _to_text(query).strip():
        raise UsageError(Failure(kind="usage", message=text("generate.no_query")))
    check_dataset(_to_text(dataset))


def _with_id(bullet: Bullet) -> Bullet:
    """Return the bullet with its id in front of the content, so that the model can cite it."""
    return bullet.model_copy(update={"content": f"[{bullet.id}] {bullet.content}"})


def _describe_found(bullets: Sequence[Bullet]) -> Text:
    if not bullets:
        return text("generate.found_nothing")
    return text("generate.found", count=len(bullets), ids=joined("list", [each.id for each in bullets]))


def _to_text(value: object) -> str:
    """Return the input as text for the Trajectory, whatever its type."""
    return _replace_surrogates(value if isinstance(value, str) else repr(value))


def _replace_surrogates(message: str) -> str:
    """Replace lone surrogates, which JSON cannot contain."""
    return _HALVES.sub("\ufffd", message)


def _describe(wrong: Exception) -> Text:
    """Return the type and message of an unexpected exception."""
    kind, message = type(wrong).__name__, str(wrong)
    return as_text(f"{kind}: {message}" if message else kind)


PROMPTS_DIR = "prompts/generator"
DEFAULT = "default"
CONTEXT_SECTION = "## 知識ベース\n{context}"
QUERY_SECTION = "## タスク\n{query}"
FALLBACK = (
    "以下の知識ベースを参考にして、タスクに回答してください.\n\n"
    f"{CONTEXT_SECTION}\n\n{QUERY_SECTION}\n\n## 回答\n"
)
"""Template if there is no `default.txt`."""
_NAME = lazy(r"[A-Za-z0-9_.-]+")
_HOLE = lazy(r"\{\{|\}\}|\{(context|query)\}")
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
"""Errors of a missing file; any other error is raised."""


def check_dataset(name: str) -> None:
    """Raise UsageError if `name` is not a valid dataset name, which becomes a file name."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(Failure(kind="usage", message=text("generate.bad_dataset", name=ascii(name[:80]))))


class PromptBuilder:
    """Builds prompts from the templates of a folder (R3.10–R3.13).

    If `prompts_dir` does not exist, Daiku's own folder is used. `own` returns a template for a dataset that
    overrides the folder's, or None.
    """

    def __init__(
        self, prompts_dir: str | Path = PROMPTS_DIR, own: Callable[[str], str | None] | None = None
    ) -> None:
        given = Path(prompts_dir)
        shipped = given == Path(PROMPTS_DIR) and not given.is_dir()
        self._folder = find_prompts_folder() / given.name if shipped else given
        self._own = own

    def build(self, query: str, bullets: Sequence[Bullet], dataset: str) -> str:
        """Return the prompt for `query` with the contents of all `bullets`.

        Inserted text is not parsed again: a bullet with `{query}` is unchanged. Raises UsageError for an
        invalid dataset name, OSError, ValueError.
        """
        context = "\n".join(bullet.content for bullet in bullets)
        return fill(self._load_template(dataset), context, query)

    def _load_template(self, dataset: str) -> str:
        """Return the template of the dataset, else the default one, else `FALLBACK`."""
        check_dataset(dataset)
        templates = (self._read(name) for name in dict.fromkeys((dataset, DEFAULT)))
        return next((template for template in templates if template is not None), FALLBACK)

    def _read(self, name: str) -> str | None:
        own = self._own(name) if self._own is not None else None
        if own is not None:
            return own
        try:
            return (self._folder / f"{name}.txt").read_text("utf-8-sig")
        except OSError as wrong:
            if wrong.errno in _MISSING:
                return None
            raise


def fill(template: str, context: str, query: str) -> str:
    """Insert both into `template`, and unescape `{{` and `}}`; other braces are text.

    If a placeholder is missing, its section is appended.
    """
    values = {"context": context, "query": query}
    used: set[str] = set()

    def value(hole: re.Match[str]) -> str:
        name = hole[1]
        if name is None:
            return hole[0][0]
        used.add(name)
        return values[name]

    filled = _HOLE.sub(value, template)
    sections = (("context", CONTEXT_SECTION), ("query", QUERY_SECTION))
    added = [
        _HOLE.sub(lambda hole: values[hole[1]], section) for name, section in sections if name not in used
    ]
    return "\n\n".join([filled, *added])

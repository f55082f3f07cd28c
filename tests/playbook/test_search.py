"""Search in a playbook: which bullets, in which order, with which scores; the same for a value and for a store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from daiku.domain.base import JsonObject
from daiku.domain.errors import Failure, LLMError
from daiku.domain.playbook import Bullet, Playbook, SearchQuery
from daiku.memory.rules.hashed import hash_vector
from daiku.memory.rules.vectors import Vector, to_integers
from daiku.playbook import search as searches
from daiku.playbook.search import PlaybookSearch, build_search
from daiku.settings import from_mapping
from daiku.texts.text import Text, text


def bullet(number: int, content: str, **more: object) -> Bullet:
    return Bullet.model_validate(
        {"id": f"tts-{number:05}", "section": "tool_usage", "content": content, **more}
    )


LESSONS = Playbook(
    bullets=(
        bullet(1, "Run the tests with `make check`"),
        bullet(2, "Format with ruff before each commit", helpful=3),
        bullet(3, "The parser lives in core/parse", section="code_patterns_and_apis"),
        bullet(4, "Tests of the parser need a fixture", helpful=1, harmful=3),
        bullet(5, "Tests are run in the evening", active=False),
    )
)


def ids(playbook: Playbook = LESSONS, **query: object) -> list[str]:
    asked = SearchQuery.model_validate({"query_text": "run the tests", "top_k": 10, **query})
    return [hit.bullet.id[-1] for hit in PlaybookSearch().search(asked, playbook)]


def test_search_takes_the_query_first_and_the_playbook_second() -> None:
    """R3.45, R3.46."""
    found = PlaybookSearch().search(SearchQuery(query_text="run the tests", top_k=2), LESSONS)
    assert found[0].bullet.id == "tts-00001"
    assert len(found) == 2


def test_an_empty_playbook_gives_an_empty_list() -> None:
    """R3.41."""
    assert ids(Playbook()) == []


def test_what_is_inactive_is_never_found() -> None:
    assert "5" not in ids(min_confidence=0.0)


def test_a_section_and_the_least_confidence_are_looked_at_first() -> None:
    """B3.2."""
    assert ids(section_filter="code_patterns_and_apis") == ["3"]
    assert set(ids()) == {"1", "2", "3"}
    assert set(ids(min_confidence=0.2)) == {"1", "2", "3", "4"}
    assert ids(min_confidence=0.9) == ["2"]


def test_what_the_least_confidence_hides_is_shown_to_persons_as_resting() -> None:
    """B3.2: one success and three failures hide a bullet; a person is shown that it is there, a run is not told it."""
    query = SearchQuery(query_text="tests of the parser")
    told = PlaybookSearch().search(query, LESSONS)
    shown = PlaybookSearch().search(query, LESSONS, resting=True)
    assert "tts-00004" not in [hit.bullet.id for hit in told]
    assert [hit.bullet.id for hit in shown if hit.resting] == ["tts-00004"]
    assert not any(hit.resting for hit in told)


def test_a_question_without_words_is_told_the_first() -> None:
    assert ids(query_text="???", top_k=2) == ["1", "2"]


def test_keywords_are_searched_too() -> None:
    playbook = Playbook(bullets=(bullet(1, "Use the wrapper"), bullet(2, "Use the shim", keywords=("npm",))))
    assert ids(playbook, query_text="npm", top_k=1) == ["2"]


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_alpha_is_a_share(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        PlaybookSearch(alpha=alpha)


class Meanings:
    """An embedder that knows two meanings: cold and warm. It may fail."""

    name = "test/meanings"
    unrelated = 0.3

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.fails = False

    @property
    def describe(self) -> Text:
        return text("memory.matches_words")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if self.fails:
            raise LLMError(Failure(kind="connection", message=text("memory.matches_words")))
        self.asked.append(list(texts))
        return [to_integers([1.0, 0.1] if {"ice", "snow"} & set(t.split()) else [0.1, 1.0]) for t in texts]

    async def aclose(self) -> None:
        """Nothing is open."""


COLD = Playbook(bullets=(bullet(1, "fire burns"), bullet(2, "snow falls")))


async def test_the_vectors_of_a_provider_are_used_also_where_a_loop_runs() -> None:
    """R3.45: the search waits for the service, whoever calls it."""
    query = SearchQuery(query_text="ice", top_k=1)
    assert [hit.bullet.id for hit in PlaybookSearch(Meanings()).search(query, COLD)] == ["tts-00002"]


def test_a_provider_is_sent_each_text_once() -> None:
    meanings = Meanings()
    search = PlaybookSearch(meanings)
    for question in ("ice", "ice", "snow"):
        search.search(SearchQuery(query_text=question), COLD)
    search.search(SearchQuery(query_text="ice"), Playbook(bullets=COLD.bullets[:1]))
    assert meanings.asked == [["ice", "fire burns", "snow falls"], ["snow"]]


def test_words_are_searched_alone_while_a_provider_fails() -> None:
    meanings = Meanings()
    meanings.fails = True
    search = PlaybookSearch(meanings)
    query = SearchQuery(query_text="falls")
    assert [hit.bullet.id for hit in search.search(query, COLD)] == ["tts-00002"]
    meanings.fails = False
    assert len(search.search(query, COLD)) == 2


def test_a_model_that_finds_a_lesson_alike_is_believed() -> None:
    """Words find what it does not; without a model they decide alone."""
    question = SearchQuery(query_text="some ice")
    for embedder, found in ((Meanings(), 1), (None, 0)):
        assert len(PlaybookSearch(embedder).search(question, COLD, related=True)) == found


class Slow(Meanings):
    """It answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = threading.Event()
        self.answered = threading.Event()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await asyncio.to_thread(self.may_answer.wait)
        return await super().embed(texts)

    async def aclose(self) -> None:
        self.answered.set()


def test_a_provider_that_does_not_answer_is_waited_for_once_and_what_comes_late_is_there_for_the_next_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that is down or still loads its model must not keep every run from its lessons: words find them meanwhile."""
    waits: list[float] = []
    look = searches.ServiceVectors._collect

    def noted(self: searches.ServiceVectors, seconds: float) -> None:
        waits.append(seconds)
        look(self, seconds)

    monkeypatch.setattr(searches.ServiceVectors, "_collect", noted)
    monkeypatch.setattr(searches, "WAITED_SECONDS", 0.01)
    slow = Slow()
    search = PlaybookSearch(slow)

    def vector_scores(question: str) -> list[float]:
        return [hit.vector_score for hit in search.search(SearchQuery(query_text=question), COLD)]

    assert vector_scores("snow falls") == [0.0]
    assert vector_scores("snow") == [0.0]
    assert waits == [0.0, 0.01, 0.0, 0.0]
    slow.may_answer.set()
    assert slow.answered.wait(10)
    assert search._service is not None
    while (pending := search._service._request) is not None and not pending.vectors.done():
        pending.vectors.result(10)
    monkeypatch.setattr(searches, "WAITED_SECONDS", 10.0)
    assert vector_scores("snow falls") == [1.0, 0.0]
    assert slow.asked == [["snow falls", "fire burns"]]


def test_the_settings_name_the_embedder() -> None:
    """`memory.embedder`: words without a download, or a provider's model; until its key is there words are searched."""
    query = SearchQuery(query_text="run the tests")
    for embedder in ("", "openai/text-embedding-3-small"):
        settings: JsonObject = {"memory": {"embedder": embedder}, "playbook": {"alpha": 0.0}}
        search = build_search(from_mapping(settings, {}))
        assert search.search(query, LESSONS)[0].bullet.id == "tts-00001"


def test_what_has_nothing_to_do_with_the_question_is_left_out_where_that_is_wanted() -> None:
    """B3.2 stretches what there is, so that the best of nothing is at the top: `related` asks whether it fits at all."""
    search = PlaybookSearch()
    strange = SearchQuery(query_text="who painted the ceiling of the chapel?")
    assert len(search.search(strange, LESSONS)) == 3
    assert search.search(strange, LESSONS, related=True) == []
    found = search.search(SearchQuery(query_text="run the tests", top_k=1), LESSONS, related=True)
    assert [hit.bullet.id[-1] for hit in found] == ["1"]


class Alike(Meanings):
    """Compares words, and says of no cosine that it means anything."""

    unrelated = 1.1

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [hash_vector(each) for each in texts]


def test_what_is_left_out_makes_room_for_what_fits() -> None:
    """Among the nearest there may be strangers before the one that fits."""
    near = [bullet(n, "of the of the of the", keywords=()) for n in range(1, 30)]
    playbook = Playbook(bullets=(*near, bullet(90, "the kites of the harbour of the bay of the town")))
    asked = SearchQuery(query_text="the harbour of the of the", top_k=2)
    found = PlaybookSearch(Alike(), alpha=1.0).search(asked, playbook, related=True)
    assert [hit.bullet.id for hit in found] == ["tts-00090"]

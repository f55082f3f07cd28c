"""The ranking of bullets: one score from words and vectors, each stretched to 0..1 over all that the query asks for."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.playbook import Bullet
from daiku.memory.rules.hashed import hash_vector
from daiku.memory.rules.nearest import Ranked
from daiku.memory.rules.vectors import cosine, pack, squared_length
from daiku.playbook.rules.ranking import (
    Lessons,
    Question,
    Scored,
    count_candidates,
    merge_scores,
    search,
    split_search_terms,
)

WORDS = ["tests", "pytest", "run", "make", "parse_json", "HttpClient", "設定", "試験", "lint", "ci", "!"]
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), max_size=12)


def in_memory(said: list[str]) -> Lessons:
    lessons = Lessons(Bullet(id=str(at), section="environment", content=each) for at, each in enumerate(said))
    for at, vector in enumerate(map(hash_vector, said)):
        lessons.add_vector(str(at), pack(vector), squared_length(vector))
    return lessons


def asked(text: str, most: int = 10, hidden: frozenset[int] = frozenset()) -> Question:
    return Question(text, hash_vector(text), most, hidden)


def stretched(scores: dict[int, float]) -> dict[int, float]:
    low, high = min(scores.values()), max(scores.values())
    return {n: 0.5 if high == low else (score - low) / (high - low) for n, score in scores.items()}


def by_hand(said: list[str], question: str, alpha: float, most: int, hidden: frozenset[int]) -> list[Scored]:
    """B3.2 as it is written: every text has both scores, and both are stretched over all of them."""
    counted = [Counter(split_search_terms(each)) for each in said]
    usual = sum(sum(each.values()) for each in counted) / len(said)
    shown = [n for n in range(len(said)) if n not in hidden]
    have = {term: sum(term in each for each in counted) for term in split_search_terms(question)}
    words: dict[int, float] = {}
    for n in shown:
        words[n] = 0.0
        length = sum(counted[n].values())
        for term in sorted((t for t in have if counted[n][t]), key=lambda t: (have[t], t)):
            weight = math.log(1 + (len(said) - have[term] + 0.5) / (have[term] + 0.5)) * 2.2
            times = counted[n][term]
            words[n] += weight * times / (times + 1.2 * (1 - 0.75 + 0.75 * length / usual))
    vectors = {n: cosine(hash_vector(question), hash_vector(said[n])) for n in shown}
    if not shown:
        return []
    by_word, by_vector = stretched(words), stretched(vectors)
    found = [
        Scored(n, by_vector[n], by_word[n], alpha * by_vector[n] + (1 - alpha) * by_word[n], vectors[n])
        for n in shown
    ]
    return sorted(found, key=lambda each: (-each.combined, each.number))[:most]


@given(
    texts.filter(bool),
    st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
    st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    st.integers(1, 12),
    st.frozensets(st.integers(0, 11)),
)
def test_scores_are_those_of_b3_2(
    said: list[str], question: str, alpha: float, most: int, out: frozenset[int]
) -> None:
    """B3.2: what is filtered out is left out first; both scores are stretched to 0..1, equal ones to 0.5; combined by
    alpha; the best first; at most top_k."""
    hidden = frozenset(n for n in out if n < len(said))
    found = search(in_memory(said), asked(question, most, hidden), alpha)[:most]
    assert found == by_hand(said, question, alpha, most, hidden)


def test_nothing_is_found_where_nothing_is() -> None:
    """R3.41: an empty playbook gives an empty list."""
    assert search(in_memory([]), asked("tests"), 0.5) == []
    assert search(in_memory(["tests"]), asked("tests", hidden=frozenset({0})), 0.5) == []


def test_without_vectors_words_decide_alone() -> None:
    found = search(in_memory(["run make", "lint with ruff", "make lint"]), Question("lint", None, 5), 0.9)
    assert [each.number for each in found] == [2, 1]
    assert found[0].combined == found[0].words == 1.0


def test_what_is_on_one_list_only_counts_as_the_last_of_the_other() -> None:
    words = [Ranked(1, 5.0), Ranked(2, 3.0)]
    vectors = [Ranked(3, 0.9), Ranked(1, 0.5)]
    assert merge_scores(words, vectors, 2, 0.5) == [
        Scored(1, 0.0, 1.0, 0.5, 0.5),
        Scored(3, 1.0, 0.0, 0.5, 0.9),
        Scored(2, 0.0, 0.0, 0.0),
    ]


def test_a_list_is_filled_in_the_order_of_adding_if_wanted() -> None:
    """B3.2: without an embedder, each lesson has a score, which is 0 where no word is shared."""
    said = ["run make", "lint with ruff", "make lint"]
    found = search(in_memory(said), Question("lint", None, 5, frozenset({1}), fill=True), 0.9)
    assert [(each.number, each.words) for each in found] == [(2, 1.0), (0, 0.0)]
    found = search(in_memory(said), Question("???", None, 5, fill=True), 0.9)
    assert [(each.number, each.combined) for each in found] == [(0, 0.5), (1, 0.5), (2, 0.5)]


def test_a_changed_lesson_is_found_by_its_new_words_alone() -> None:
    """R3.45: the index in memory is changed and not built again; what is left is what a new one has."""
    lessons, bullet = (
        in_memory(["run make", "lint", "run"]),
        Bullet(id="0", section="environment", content="lint make"),
    )
    lessons.set_lesson(bullet)
    lessons.set_lesson(Bullet(id="2", section="environment", content="run", active=False))
    lessons.set_lesson(Bullet(id="1", section="tool_usage", content="lint"))
    assert [each.content for each in lessons.without_vector(None)] == ["lint make"]
    anew = Lessons([bullet, Bullet(id="1", section="tool_usage", content="lint")])
    for asked_for in ("run", "lint", "make lint"):
        question = Question(asked_for, None, 5)
        assert search(lessons, question, 0.0) == search(anew, question, 0.0)
        assert lessons.by_words(asked_for, 5, frozenset()) == anew.by_words(asked_for, 5, frozenset())
    assert search(lessons, Question("run", None, 5), 0.0) == []


def test_forms_of_a_word_and_lone_characters_are_found() -> None:
    said = ["Run the test suite", "鍵は金庫にある"]
    for question, found in (("How are suites tested?", 0), ("鍵の置き場所", 1)):
        assert [each.number for each in search(in_memory(said), Question(question, None, 5), 0.0)] == [found]


def test_more_is_looked_at_than_is_asked_for() -> None:
    assert [count_candidates(1), count_candidates(10), count_candidates(25)] == [40, 40, 100]


def test_identifiers_are_found_by_their_parts_and_japanese_by_pairs_of_characters() -> None:
    """C3.9."""
    said = ["call parseJson_file once", "close HttpClient", "設定を読む", "試験は夜に走る"]
    for question, found in (("json", 0), ("Http", 1), ("設定", 2), ("夜に走る", 3)):
        by_words = search(in_memory(said), Question(question, None, 5), 0.0)
        assert [each.number for each in by_words] == [found], question

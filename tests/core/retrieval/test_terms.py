"""Terms of texts, vectors of words, fuse_scores scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.memory.rules.hashed import DIMENSION, UNRELATED, hash_vector
from daiku.memory.rules.nearest import Ranked
from daiku.memory.rules.terms import MOST_TERMS, choose_terms, fuse_scores, limit_terms, split_terms
from daiku.memory.rules.vectors import SCALE, cosine, squared_length


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Parse the JSON", ["parse", "the", "json"]),
        ("parseJson_file", ["parse", "json", "file", "parsejsonfile"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("naïve größe_wert", ["naïve", "grösse", "wert", "grössewert"]),
        ("東京タワーへ", ["東京", "京タ", "タワ", "ワー", "ーへ"]),
        ("猫 cat", ["猫", "cat"]),
        ("ＡＢＣ ２０２４", ["abc", "2024"]),
        ("… — !", []),
        ("\x00\ud800", []),
    ],
)
def test_the_terms_of_a_text(said: str, found: list[str]) -> None:
    """C3.9, X.18: identifiers are split, Japanese is cut into pairs."""
    assert split_terms(said) == found


@given(st.text(max_size=300))
def test_any_text_has_terms_that_a_word_index_takes_and_a_vector_of_unit_length(said: str) -> None:
    for term in split_terms(said):
        assert term
        assert not any(sign in term for sign in " \"'*()\n\x00")
    length = squared_length(hash_vector(said)) ** 0.5
    assert length == 0 or abs(length - SCALE) < 0.01 * SCALE
    assert len(hash_vector(said)) == DIMENSION


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("how do we run the tests?", "unit tests run with pytest -q", "deploy happens on Fridays"),
        ("what does the jsonParser do", "parse_json reads the file", "rollback with kubectl"),
        ("タブで字下げする？", "このプロジェクトではタブを使う", "本番への配備は金曜日"),
        ("データベースの接続", "接続はデータベースのプールから取る", "会議は木曜日"),
    ],
)
def test_likeness_is_that_of_words_and_their_pieces(question: str, right: str, wrong: str) -> None:
    asked = hash_vector(question)
    assert cosine(asked, hash_vector(right)) > UNRELATED
    assert cosine(asked, hash_vector(right)) > cosine(asked, hash_vector(wrong))


def test_common_words_are_left_out_where_rare_ones_are_there() -> None:
    assert limit_terms({"the": 90_000, "kubectl": 3, "rollback": 40}) == ["kubectl", "rollback"]
    assert limit_terms({"the": 90_000}) == ["the"]
    assert limit_terms({"gone": 0}) == []
    assert len(choose_terms(f"w{n}" for n in range(500))) == MOST_TERMS


def test_two_lists_become_one_score() -> None:
    """X.10: hybrid search."""
    words = [Ranked(1, 8.0), Ranked(2, 4.0), Ranked(3, 2.0)]
    vectors = [Ranked(2, 0.9), Ranked(4, 0.5)]
    assert fuse_scores(words, vectors, 0.5, 3) == [Ranked(2, 0.5 + 0.5 / 3), Ranked(1, 0.5), Ranked(3, 0.0)]
    assert [each.number for each in fuse_scores(words, vectors, 0.0, 1)] == [1]
    assert [each.number for each in fuse_scores(words, vectors, 1.0, 1)] == [2]
    assert fuse_scores([Ranked(5, 3.0)], [], 0.0, 5) == [Ranked(5, 1.0)]
    assert fuse_scores([], [], 0.5, 5) == []

"""Whether a lesson has to do with a question: by what words say, in each sentence of it."""

from __future__ import annotations

import pytest

from daiku.playbook.rules.ranking import QuestionWords

CHECK = "Run the whole test suite with `make check`; plain `pytest` misses the browser tests."


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("run the tests", CHECK),
        ("How are the suites tested?", CHECK),
        ("make", CHECK),
        ("Generate all code anew.", "Generate by `frob run codegen`; `frob stubs` fails here."),
        ("code", "Errors of this code are values."),
        ("parseJson", "call parse_json once"),
        ("鍵の置き場所", "本番の鍵は金庫にある"),
        ("設定を読む", "設定は parse_config() で読む"),
        (f"{'The window shall open wider and show four kites in a row. ' * 20}Then run the tests.", CHECK),
        (
            "鳥の絵を描いて窓に飾ってください。そのあとテストを走らせる。",
            "テストは `make check` で走らせる。",
        ),
    ],
)
def test_words_that_say_something_are_shared(question: str, text: str) -> None:
    assert QuestionWords(question).shares_words(text)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "hello",
        "what can you do?",
        "make it wider and show more of the kites",
        "the whole orchestra sits behind a golden curtain of woven silk and listens",
        "おはようございます",
        "凧の絵を描いて",
        "C",
    ],
)
def test_words_that_say_nothing_are_no_evidence(question: str) -> None:
    assert not QuestionWords(question).shares_words(CHECK)
    assert not QuestionWords(question).shares_words("一つの試験は必ず別に書いてから走らせる")


def test_a_word_in_each_of_many_sentences_is_no_more_than_one_word() -> None:
    """A long request has every word: what counts is what one sentence of it is about."""
    apart = (
        "A browser of antiques has seven golden velvet chairs. A suite of nine rooms overlooks the quiet bay."
    )
    assert not QuestionWords(apart).shares_words(CHECK)
    assert QuestionWords("The browser suite overlooks seven golden chairs.").shares_words(CHECK)

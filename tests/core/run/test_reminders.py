"""What counts as a promise, and what is an answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daiku.run.rules.reminders import announces_action
from tests.cases import for_each

PROMISES = [
    "I'll now read the file and fix the bug.",
    "Let me look at the test first.",
    "The parser drops the last line. I will fix it now by changing `read`.",
    "Okay, let me check the configuration:",
    "First, I'll run the tests.",
    "I’ll start by exploring the repository.",
    "Now I am going to update main.py.",
    "Great! Let's run it again.",
    "まずファイルを確認します。",
    "原因が分かりました。これから main.py を修正します。",
    "では、テストを実行しましょう。",
]
ANSWERS = [
    "Done: a.py is fixed, and the tests pass.",
    "I read the file and fixed the bug.",
    "The function will read the file twice.",
    "Shall I fix it?",
    "I'll need your permission first. May I run it?",
    "If you like, I will add tests as well.",
    "Let me know if you want me to change the name.",
    "You can run `npm test` to see it.",
    "I cannot read this file: it is outside the project.",
    "Hello! What should we build?",
    "The plan is to read, then edit, then test.",
    "ファイルを修正しました。テストは成功しています。",
    "この関数は設定を確認します。",
    "修正してもよいですか？",
    "",
]


@for_each("text", PROMISES)
def test_what_is_about_to_be_done_is_a_promise(text: str) -> None:
    assert announces_action(text)
    assert announces_action(f"The bug is in `read`.\n\n{text}")


@for_each("text", ANSWERS)
def test_results_questions_and_offers_are_answers(text: str) -> None:
    assert not announces_action(text)


@for_each("text", PROMISES)
def test_a_promise_that_a_result_follows_is_an_answer(text: str) -> None:
    assert not announces_action(f"{text}\n\nDone: it works now.")


@given(st.text(max_size=2000))
def test_any_text_is_judged(text: str) -> None:
    announces_action(text)

"""A comment that only agrees asks for nothing; whatever says more than that does."""

from __future__ import annotations

import pytest

from daiku.items.rules.assent import is_only_agreement


@pytest.mark.parametrize(
    "words",
    [
        "LGTM",
        "lgtm!",
        "LGTM 👍🏽",
        "Looks good to me, thanks!",
        "@daiku-bot Thank you very much.",
        "@daiku[bot] great work — ship it",
        "👍",
        ":+1: :tada:",
        "❤️",
        "+1",
        "Perfect.\n\nThanks a lot!",
        "ＬＧＴＭです！",
        "LGTM です。ありがとうございます！",
        "問題なさそうです、ありがとうございました。",
    ],
)
def test_agreement_and_thanks_ask_for_nothing(words: str) -> None:
    assert is_only_agreement(words)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "   ",
        "...",
        "LGTM, but rename x.",
        "Thanks for the work, please add a test.",
        "Looks good to me?",
        "Not ok",
        "👎",
        "👍 / 👎",
        "Merge it.",
        "LGTM " * 40,
        "lgtm\n- rename x",
        "いいですね、でもテストを足してください。",
        "ok > x",
        "@dev",
        "great:x.py",
        "```\nlgtm\n```",
        "~~lgtm~~ no",
    ],
)
def test_whatever_says_more_is_heard(words: str) -> None:
    assert not is_only_agreement(words)

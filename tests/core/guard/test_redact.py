"""Secrets taken out of texts: those that are learnt while the program runs, and tokens of a GitHub App by their form."""

from __future__ import annotations

import base64

from daiku.guard.rules.redact import MOST_LEARNT, Redactor

LEARNT = "zq81-learnt-while-it-runs-0042"


def test_a_secret_is_taken_out_from_when_it_is_learnt_in_every_encoding() -> None:
    hide = Redactor(("given-from-the-start",))
    assert hide(LEARNT) == LEARNT
    hide.learn(LEARNT)
    for form in (LEARNT, LEARNT[::-1], LEARNT.encode().hex(), base64.b64encode(LEARNT.encode()).decode()):
        assert form not in hide(f"<{form}>")
    assert hide("given-from-the-start") == "[redacted]"
    once = hide(f"{LEARNT} and given-from-the-start")
    assert hide(once) == once


def test_the_latest_secrets_are_kept_and_one_that_is_learnt_again_is_new() -> None:
    hide = Redactor(())
    hide.learn(LEARNT)
    for number in range(MOST_LEARNT - 1):
        hide.learn(f"another-secret-{number:04}")
    assert LEARNT not in hide(LEARNT)
    hide.learn(LEARNT)
    hide.learn("one-more-than-is-kept")
    assert LEARNT not in hide(LEARNT)
    assert hide("another-secret-0000") == "another-secret-0000"


def test_what_is_too_short_for_a_secret_is_not_learnt() -> None:
    hide = Redactor(())
    hide.learn(" the ")
    assert hide("the end") == "the end"


def test_a_token_of_over_two_hundred_characters_is_taken_out_also_of_an_address() -> None:
    token = "ghs_daiku-app_eyJ" + "hbGci0iJ9" * 12 + ".eyJ" + "pc3MiOiI3" * 12 + "." + "c2lnbmF0" * 8
    hide = Redactor(())
    for told in (
        f"https://x-access-token:{token}@github.com/o/r.git",
        f"see https://h/?token={token}&x=1",
        f"'{token}'",
    ):
        assert token[:40] not in hide(told)
        assert token[-20:] not in hide(told)

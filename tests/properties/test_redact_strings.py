"""Redaction of decoded strings: what stands before or after a token never hides it, in any sink."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daiku.guard.rules.redact import MARK, Redactor, redact_encoded, redact_json
from tests.cases import examples, for_each

TOKEN = "ghp_" + "aB1" * 12
KNOWN = "zq81-known-value-0042"
BEFORE = ["", "_", "-", "\x1b", "\n", "\t", "\r", "\x1b[32m", "\x1b[0;1m", "\x1b[38;5;208m", "(", '"', "'", "=", ":", " ", "日本", "é", "\\n", "\\t", "\\r",
          "\\x0a", "\\u000a", "\\012", "%0A", ",", "[", "{", "<", ">", "/", "@", "|", "`", "\0", "\x1f", "\u2028", "\x1b[K", "\x1b[01;31m\x1b[K",
          "\x1b[2J", "\x1b[?25h", "\x1b(B", "\x1bM", "\x9b1m", "\\x1b[K", "^M", "^J", "^[[0m", "\\U0000000a", "=3D", "=0A"]  # fmt: skip
AFTER = [
    "",
    "\n",
    "\t",
    "\r",
    "\x1b[0m",
    ")",
    '"',
    "'",
    "=",
    ":",
    " ",
    "日本",
    "é",
    "\\n",
    ",",
    "]",
    "}",
    "<",
    ";",
    "&",
    "|",
    "`",
    "\0",
]

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=30)
    | st.sampled_from([TOKEN, KNOWN, f"a\n{TOKEN}"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from(["password", "Authorization", KNOWN]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@for_each("before", BEFORE)
@for_each("after", AFTER)
def test_a_token_is_redacted_whatever_stands_next_to_it(before: str, after: str) -> None:
    """A23.1"""
    redact = Redactor([KNOWN])
    for secret in (TOKEN, KNOWN):
        text = f"word{before}{secret}{after}" if before else f"{secret}{after}"
        encoded = json.dumps({"text": text, text: [text]})
        assert secret not in redact(text)
        assert secret not in redact_encoded(encoded, redact)


@for_each("sequence", ["\x1b[01;31m\x1b[K", "\x1b[m", "\x9b1m", "\x1b(B", "\x1b[0;38;5;12m"])
def test_a_token_that_is_highlighted_in_parts_is_redacted(sequence: str) -> None:
    """A23.1: as `grep --color` does."""
    redact = Redactor([KNOWN])
    for secret in (TOKEN, KNOWN):
        for at in range(1, len(secret)):
            text = f"a = {secret[:at]}{sequence}{secret[at:]} end"
            assert redact(text) == f"a = {MARK} end"
    assert redact(f"{sequence}plain{sequence} words") == f"{sequence}plain{sequence} words"


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [each for key, item in value.items() for each in (key, *_strings(item))]
    return [each for item in value for each in _strings(item)] if isinstance(value, list) else [str(value)]


@given(JSON)
@settings(max_examples=examples(200), deadline=None)
def test_no_string_of_a_value_keeps_a_secret(value: Any) -> None:
    redact = Redactor([KNOWN])
    clean = redact_json(value, redact)
    assert all(redact(each) == each for each in _strings(clean))
    assert redact_json(clean, redact) == clean
    if all(redact(each) == each for each in _strings(value)) and "redacted" not in str(clean):
        assert clean is value


@given(JSON)
@settings(max_examples=examples(100), deadline=None)
def test_a_value_without_secrets_is_returned_as_it_is(value: Any) -> None:
    assert redact_json(value, str) is value
    data = json.dumps(value)
    assert redact_encoded(data, str) is data


@for_each("key", ["Authorization", "authorization", "x-api-key", "private-token"])
def test_a_value_is_judged_with_its_key(key: str) -> None:
    """A23.1"""
    assert redact_json({"headers": {key: "0123456789abcdef"}}, Redactor([])) == {"headers": {key: MARK}}


def test_a_secret_at_the_start_of_a_string_is_found_after_any_other_string() -> None:
    """A match that is no secret and ends one string must not swallow the start of the next."""
    redact = Redactor([])
    for text in ("authorization:", "bearer", "https://a:", "?token=", "eyJhbGciOiJIUzI1NiJ9.", "KEY=", "sk-"):
        assert redact_json([text, TOKEN], redact) == [text, MARK]


@pytest.mark.slow
def test_time_grows_with_the_value_and_no_faster() -> None:
    from tests.timing import cpu_seconds

    redact = Redactor([KNOWN])
    value = [{"k": "x" * 50, "text": "\n\\n" * 20}] * 4000
    assert cpu_seconds(lambda: redact_json(value, redact)) < 1.5

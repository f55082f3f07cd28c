"""No known secret survives, in any encoding, anywhere in a text; and it takes linear time."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from daiku.guard.rules import redact as redact_module
from daiku.guard.rules.known_values import MIN_SECRET, KnownValues
from daiku.guard.rules.redact import MARK, Redactor, may_contain_secret, redact_encoded, redact_json
from daiku.texts.rules.patterns import WordSearch
from tests.cases import examples, for_each
from tests.timing import cpu_seconds

SECRETS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Zs", "Cc", "Zl", "Zp")), min_size=12, max_size=40
)
ENCODINGS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "reversed": lambda s: s[::-1],
    "hex": lambda s: s.encode().hex(),
    "HEX": lambda s: s.encode().hex().upper(),
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "urlsafe": lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    "url": lambda s: quote(s, safe=""),
    "url_plus": quote_plus,
    "url_small": lambda s: re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), quote(s, safe="")),
    "json": lambda s: json.dumps(s)[1:-1],
    "json_utf8": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(secret=SECRETS, before=st.text(max_size=20), after=st.text(max_size=20))
@settings(max_examples=examples(60))
def test_a_secret_is_gone_in_every_encoding(encoding: str, secret: str, before: str, after: str) -> None:
    encoded = ENCODINGS[encoding](secret)
    if encoding in ("base64", "urlsafe"):
        encoded = encoded.rstrip("=")
    assume(len(encoded) > MIN_SECRET and encoded[:-1] not in MARK and encoded[:-1] not in before + after)
    text = f"{before}\n{encoded}\n{after}"
    cleaned = Redactor([secret])(text)
    # The last character of base64 also carries zero bits of padding, and is not the secret's alone.
    assert encoded[:-1] not in cleaned


@given(secret=SECRETS, before=st.binary(max_size=10), after=st.binary(max_size=10))
@settings(max_examples=examples(100))
def test_base64_of_a_text_around_the_secret_hides_it_at_any_alignment(
    secret: str, before: bytes, after: bytes
) -> None:
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    assert MARK in Redactor([secret])(encoded)


@given(st.lists(SECRETS, max_size=4), st.text(max_size=200))
@settings(max_examples=examples(150))
def test_redacting_twice_is_redacting_once(secrets: list[str], text: str) -> None:
    redact = Redactor(secrets)
    once = redact(text + "".join(secrets) + text)
    assert redact(once) == once


@given(st.text(st.characters(max_codepoint=0x2FF), max_size=300))
def test_ordinary_text_with_nothing_to_hide_is_unchanged(text: str) -> None:
    assume("=" not in text and "://" not in text and "-" not in text and "_" not in text)
    assume(
        "bearer" not in text.lower()
        and "eyJ" not in text
        and "AIza" not in text
        and "authorization" not in text.lower()
    )
    assert Redactor([])(text) == text


SHAPES = re.compile(redact_module._SHAPES.pattern, re.VERBOSE | re.ASCII)


@pytest.mark.slow(seconds=25)
@given(st.from_regex(SHAPES, alphabet=st.characters(codec="ascii")))
@settings(max_examples=examples(1500))
def test_the_quick_look_overlooks_no_shape(text: str) -> None:
    assert may_contain_secret(text)


KNOWN = "zq81-known-value-0042"
PIECES = st.sampled_from([
    "password", "PASSWD", "passphrase", "api_key", "apiKey", "KEY", "x-api-key", "Authorization", "Cookie", "token", "secret", "pwd", "PAT", "sig",
    "credential", "discord", "twilio", "curl -u ada", "machine h password", "sonar_login", "Bearer", "https://ada", "@h/x", "=", ": ", ":", "?", "&", "=>", "\"",
    "'", " ", "\n", "\t", "\\", "\\n", "日本", "/", ".", "_", "12", "word", "src/core/run.py", "accept_plain_text", "aB1" * 4, "ab12" * 8, "AB12" * 10,
    "ghp_" + "aB1" * 12, "sk-" + "a1B2" * 6, "SK" + "0f" * 16, "MTA" + "aB1" * 7 + "." + "aB1x_-" + "." + "aB1" * 9, KNOWN, KNOWN[::-1], KNOWN[:9], KNOWN[9:],
    KNOWN.encode().hex(), "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "PRIVATE-LINES: 1", "Private-Lines: 1\nAAAA", "<add key=\"Password\" value=\"",
])  # fmt: skip
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@given(TEXTS)
@settings(max_examples=examples(600), deadline=None)
def test_the_quick_look_changes_no_result(text: str) -> None:
    quick, thorough = KnownValues([KNOWN]), KnownValues([KNOWN])
    thorough._shortest, thorough._pieces = 0, WordSearch([b""])
    assert quick.redact(text) == thorough.redact(text)
    assert Redactor([KNOWN])(text) == redact_module._redact_announced(thorough.redact(text))


@for_each("text", [
    "default login a password b-c", "X_PAT=abcdef-1", "X_PWD=abcdef-1", "MY_KEY=abcdef-1", "?sig=ab!cdefg", "&signature=ab!cdefg", "?token=ab!cdefg", "bearer ab1" + "c" * 14,
    "-----BEGIN PRIVATE KEY-----", "Private-Lines: 1\nAAAA\n", "api-key: abcd-efg", "cookie: a=ab!cdefgh", "ab://b:cd!@e", "passphrase = 'ab1!cd'", "credential: ab1!cdef",
    "_auth=ab1!cdef", "secret: ab1!cdef", "curl --user a:b!c", "wget -u a:b!c", '<add key="Password" value="a b c d e" />', "https://" + "0" * 32 + "@b.ingest.c",
    "http://01234567:89abcdef@gems.contribsys.com/",
])  # fmt: skip
def test_every_sign_of_a_secret_is_seen_by_the_quick_look(text: str) -> None:
    """A23.1"""
    assert MARK in Redactor([])(text)
    assert may_contain_secret(text)


@given(
    st.dictionaries(
        st.sampled_from(["text", "path", "password", "discord", "x-api-key"]),
        st.lists(TEXTS, max_size=2) | TEXTS,
    )
)
@example({"text": "ghp_" + "aB1" * 12, "path": ["MTA" + "aB1" * 7 + "." + "aB1x_-" + "." + "aB1" * 9]})
@settings(max_examples=examples(400), deadline=None)
def test_an_encoded_value_is_redacted_as_the_decoded_one_is(value: dict[str, list[str] | str]) -> None:
    """A23.1"""
    redact = Redactor([KNOWN])
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert json.loads(redact_encoded(data, redact)) == redact_json(value, redact)


FAKES = [
    "sk-ant-api03-" + "Ab1_" * 20,
    "sk-proj-" + "aB3-" * 12,
    "sk-" + "a1B2" * 12,
    "ghp_" + "aB1" * 12,
    "github_pat_" + "A1b_" * 15,
    "glpat-" + "aB1-" * 5,
    "AKIA" + "ABCD1234" * 2,
    "AIza" + "aB1-x" * 7,
    "xoxb-" + "1234567890-" * 3,
    "hf_" + "aB1" * 12,
    "npm_" + "aB1" * 12,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
]


@for_each("key", FAKES)
@for_each("around", ["{}", 'key = "{}"', "x={};", "https://h/?k={}&b", "X_API_KEY={}", "FOO={}", "Bearer {}"])
def test_keys_are_known_by_their_shape(key: str, around: str) -> None:
    assert key not in Redactor([])(around.format(key))


@for_each(
    ("text", "gone"),
    [
        ("Authorization: Bearer abcDEF0123456789xyz", "abcDEF0123456789xyz"),
        ('{"authorization": "Basic dXNlcjpwYXNz"}', "dXNlcjpwYXNz"),
        ("x-api-key: 0123456789abcdef", "0123456789abcdef"),
        ("'x-goog-api-key': 'abcd1234efgh'", "abcd1234efgh"),
        ("postgres://bob:hunter22@db/x", "hunter22"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
        ("DB_PASSWORD='correct1horse'", "correct1horse"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKC\n-----END RSA PRIVATE KEY-----", "MIIEpAIBAAKC"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r", "b3BlbnNzaC1r"),
    ],
)
def test_headers_urls_blocks_and_variables_lose_their_secret(text: str, gone: str) -> None:
    cleaned = Redactor([])(text)
    assert gone not in cleaned
    assert MARK in cleaned


@for_each(
    "text",
    [
        "token = get_token()",
        "API_KEY=os.environ",
        'SECRET_KEY = "x"',
        "export TOKEN=$OTHER_TOKEN_NAME",
        "TOKEN=${{ secrets.GITHUB_TOKEN }}",
        "the bearer of this letter is here today",
        "https://example.org:8080/a@b",
        "a risk-free approach to desk-organising-and-more-of-that",
        "PYTHONPATH=server/daiku/core",
        "-----BEGIN PUBLIC KEY-----\nMII\n-----END PUBLIC KEY-----",
        "5f4dcc3b5aa765d61d8327deb882cf99",
    ],
)
def test_code_and_prose_about_secrets_is_left_alone(text: str) -> None:
    assert Redactor([])(text) == text


@for_each(
    "unit",
    [
        "-----BEGIN PRIVATE KEY-----",
        "bearer ",
        "a" * 40,
        "A_",
        "A=",
        "sk-",
        "eyJa.",
        "https://a:",
        "authorization:",
        "[redacted]",
        "x",
        "KEY=abc1 ",
        "://",
        "a:b@",
        "?token=",
        "&token=a",
        "?token=[redacted]",
    ],
)
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    redact = Redactor(["0123456789abcdef", "s3cr3t-value-that-is-long"])
    text = unit * (400_000 // len(unit))
    assert cpu_seconds(lambda: redact(text)) < 1.5


WORDS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def of(alphabet: str, least: int, most: int) -> st.SearchStrategy[str]:
    return st.text(st.sampled_from(alphabet), min_size=least, max_size=most)


JWT = st.tuples(of(WORDS + "_-", 10, 60), of(WORDS + "_-", 10, 400), of(WORDS + "_-", 20, 400)).map(
    lambda p: f"eyJ{p[0]}.eyJ{p[1]}.{p[2]}"
)
GITLAB = (
    "glpat",
    "gldt",
    "glrt",
    "glrtr",
    "glcbt",
    "glptt",
    "glft",
    "glimt",
    "glagent",
    "glsoat",
    "gloas",
    "glffct",
    "glwt",
)
TOKENS = st.one_of(
    st.tuples(st.sampled_from("oprsu"), of(WORDS, 36, 80)).map(lambda p: f"gh{p[0]}_{p[1]}"),
    st.tuples(st.sampled_from("oprsu"), of("0123456789", 4, 9), JWT).map(lambda p: f"gh{p[0]}_{p[1]}_{p[2]}"),
    JWT,
    of(WORDS, 36, 60).map("github_pat_".__add__),
    of(WORDS + "-_", 20, 40).map("glpat-".__add__),
    # The newer form says where it belongs: what it is of, its version, a sum.
    st.tuples(st.sampled_from(GITLAB), of(WORDS + "-_", 27, 300), of(WORDS, 2, 2), of(WORDS, 7, 9)).map(
        lambda p: f"{p[0]}-{p[1]}.{p[2]}.{p[3]}"
    ),
)
PLACES = [
    "token {}", "{}", "x={}", "https://x-access-token:{}@github.com/o/r.git", "https://{}@github.com/o/r", '{{"token": "{}"}}', "a_{}_b",
    "export T='{}'", "({})", "git clone https://x:{}@h/", "log: {}\nnext", "`{}`", "Authorization: token {}", "_{}",
]  # fmt: skip


def _windows(secret: str, size: int = 12) -> set[str]:
    return {secret[at : at + size] for at in range(len(secret) - size + 1)}


@given(token=TOKENS, place=st.sampled_from(PLACES))
@settings(max_examples=examples(400), deadline=None)
def test_no_piece_of_a_token_of_a_forge_is_left_wherever_it_stands(token: str, place: str) -> None:
    cleaned = Redactor([])(place.format(token))
    assert not _windows(token.split("_", 1)[1] if token.startswith("gh") else token) & _windows(cleaned)
    assert Redactor([])(cleaned) == cleaned


@given(
    user=of(WORDS + "-_.", 0, 120),
    password=of(WORDS + "-_.~$!*+=%{}[]()", 3, 3000),
    host=st.sampled_from(["h", "x.org:8080"]),
)
@settings(max_examples=examples(200), deadline=None)
def test_the_password_of_an_address_is_gone_however_long_it_is(user: str, password: str, host: str) -> None:
    assume(password[0] not in "${" and MARK not in password)
    cleaned = Redactor([])(f"cloning https://{user}:{password}@{host}/a.git now")
    assert f":{password}@" not in cleaned
    assert f"{user}:{MARK}@{host}" in cleaned


@given(
    name=st.sampled_from(
        ["private_token", "access_token", "job_token", "token", "PRIVATE_TOKEN", "sig", "client_secret"]
    ),
    value=of(WORDS + "-_.~%+/", 8, 3000),
    before=st.sampled_from(["?", "?page=2&", "?a=b&amp=1&"]),
)
@settings(max_examples=examples(200), deadline=None)
def test_a_token_in_an_address_is_gone_and_the_rest_of_the_address_stays(
    name: str, value: str, before: str
) -> None:
    redact = Redactor([])
    cleaned = redact(f"GET https://h/api/v4/x{before}{name}={value}&per_page=9 failed")
    assert cleaned == f"GET https://h/api/v4/x{before}{name}={MARK}&per_page=9 failed"
    assert redact(cleaned) == cleaned


def test_a_password_that_a_template_fills_in_stays() -> None:
    for text in (
        "https://u:${TOKEN}@h/",
        "https://u:$TOKEN@h/",
        "https://u:{password}@h/",
        "https://u:<password>@h/",
    ):
        assert Redactor([])(text) == text
